import os
from urllib.parse import urlsplit

database = urlsplit(os.environ["DATABASE_URL"])
SECRET_KEY = os.environ.get("SECRET_KEY", "for tests only")
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "clinic.urls"
WSGI_APPLICATION = "clinic.wsgi.application"
INSTALLED_APPS = []
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": database.path.lstrip("/"),
        "USER": database.username,
        "PASSWORD": database.password or "",
        "HOST": database.hostname,
        "PORT": database.port or 5432,
        "CONN_MAX_AGE": 300,
    }
}

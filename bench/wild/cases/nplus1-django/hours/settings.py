import os
from urllib.parse import urlsplit

url = urlsplit(os.environ["DATABASE_URL"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url.path.lstrip("/"),
        "USER": url.username,
        "HOST": url.hostname,
        "PORT": url.port,
        "CONN_MAX_AGE": None,
    }
}
SECRET_KEY = "not secret"
ALLOWED_HOSTS = ["*"]
DEBUG = False
ROOT_URLCONF = "hours.urls"
INSTALLED_APPS = ["hours"]
MIDDLEWARE = []
USE_TZ = False
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
JOIN = os.environ.get("SELECT_RELATED") == "1"

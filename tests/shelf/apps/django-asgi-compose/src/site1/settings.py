import os

SECRET_KEY = os.getenv("DJANGO_SECRET_KEY", "dev")
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
ROOT_URLCONF = "site1.urls"
ASGI_APPLICATION = "site1.asgi.application"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
USE_TZ = True

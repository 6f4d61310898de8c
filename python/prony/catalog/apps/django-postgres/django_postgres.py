"""A front page of news, over WSGI: Django's models, queries and templates, and PostgreSQL.

Where the database is, libpq's variables say: PGHOST, PGPORT, PGDATABASE and PGUSER. A connection lives as long as its
request, which is Django's default, unless DJANGO_CONN_MAX_AGE has another number of seconds.
"""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

# The middleware sets Content-Length, without which servers send it in chunks, or close the connection to end it.
# The key signs nothing here: no sessions, no cookies, no forms.
settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": os.environ.get("PGHOST", ""),
            "PORT": os.environ.get("PGPORT", ""),
            "NAME": os.environ.get("PGDATABASE", "postgres"),
            "USER": os.environ.get("PGUSER", ""),
            "CONN_MAX_AGE": int(os.environ.get("DJANGO_CONN_MAX_AGE", "0")),
        }
    },
    DEBUG=False,
    INSTALLED_APPS=["news"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    ROOT_URLCONF="news.urls",
    SECRET_KEY="not a secret",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
    USE_TZ=True,
)
app = get_wsgi_application()

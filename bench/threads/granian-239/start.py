"""A project of Django as it is made: the page that says that it works, of some 10 kB."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.urls import path
from django.views.debug import default_urlconf

settings.configure(
    DEBUG=True,
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of no use",
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
)
urlpatterns = [path("", default_urlconf)]
application = get_wsgi_application()

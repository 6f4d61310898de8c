"""A site whose pages for guests go through Django's cache in files: no server to install."""
import atexit
import os
import shutil
import tempfile
import uuid

import django
from django.conf import settings
from django.core.cache import cache
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path

folder = tempfile.mkdtemp(prefix="guest-pages-")
atexit.register(shutil.rmtree, folder, True)
if os.environ.get("CACHE", "files") == "files":
    backend = {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": folder,
        "OPTIONS": {"MAX_ENTRIES": 500_000},
    }
    for n in range(15_000):  # what the guests of the last hours left
        with open(os.path.join(folder, f"{n:032x}.djcache"), "wb") as file:
            file.write(b"x" * 200)
else:
    backend = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 5_000}}

settings.configure(
    SECRET_KEY="not-a-secret",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    CACHES={"default": backend},
    MIDDLEWARE=[],
    LOGGING_CONFIG=None,
)
django.setup()


def guest(request):
    visitor = request.COOKIES.get("guest") or uuid.uuid4().hex
    key = f"basket:{visitor}"
    basket = cache.get(key)
    if basket is None:
        basket = {"items": [], "currency": "EUR"}
        cache.set(key, basket, 3600)
    return JsonResponse({"guest": visitor, "basket": basket})


urlpatterns = [path("", guest)]
application = get_wsgi_application()

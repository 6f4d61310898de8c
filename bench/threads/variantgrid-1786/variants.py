"""A grid of variants: a slow query of 40 ms, and 2 ms of computing."""

import time

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="of no use")


def grid(request):
    time.sleep(0.040)  # the query
    found = sum(n * n for n in range(64_000))
    return HttpResponse(f"{found}\n", content_type="text/plain")


urlpatterns = [path("", grid)]
application = get_wsgi_application()

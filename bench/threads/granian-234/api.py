"""An API that computes: 4 ms for a list of a hundred, and no wait worth another process."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="of no use")


def items(request):
    found = [{"id": n, "score": sum(k * k for k in range(1_280))} for n in range(100)]
    return JsonResponse({"items": found})


urlpatterns = [path("", items)]
application = get_wsgi_application()

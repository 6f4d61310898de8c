"""The smallest Django application, over WSGI."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path


def hello(request):
    return HttpResponse("Hello from Django!\n", content_type="text/plain")


urlpatterns = [path("", hello)]

# The middleware sets Content-Length, without which servers send it in chunks, or close the connection to end it.
# The key signs nothing here: no sessions, no cookies, no forms.
settings.configure(
    ALLOWED_HOSTS=["*"],
    DEBUG=False,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="not a secret",
)
app = get_wsgi_application()

"""Sign-up: the page confirms by e-mail."""
import os
import queue
import threading

from django.conf import settings
from django.core.mail import send_mail
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path

settings.configure(
    SECRET_KEY="a secret",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    EMAIL_HOST="127.0.0.1",
    EMAIL_PORT=9214,
    EMAIL_TIMEOUT=10,
)
outbox: queue.Queue = queue.Queue(maxsize=100_000)


def confirm():
    send_mail("Welcome", "Please confirm.", "shop@example.org", ["customer@example.org"])


def send_later():
    while True:
        outbox.get()
        confirm()


def sign_up(request):
    if os.environ.get("MAIL_LATER") == "1":
        outbox.put(None)
    else:
        confirm()
    return JsonResponse({"welcome": True})


urlpatterns = [path("", sign_up)]
app = get_wsgi_application()
threading.Thread(target=send_later, daemon=True).start()

"""Invitations to a workspace: whoever is invited gets a mail."""
import asyncio
import os
import secrets
import smtplib
from email.message import EmailMessage

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

SMTP_HOST = os.environ.get("SMTP_HOST", "127.0.0.1")
SMTP_PORT = int(os.environ.get("SMTP_PORT", "9507"))
IN_THREAD = os.environ.get("MAIL_IN_THREAD") == "1"


def invitation(to: str, token: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = "team@example.org"
    message["To"] = to
    message["Subject"] = "You are invited"
    message.set_content(f"Follow https://example.org/join/{token} to join the workspace.\n")
    return message


def deliver(message: EmailMessage) -> None:
    with smtplib.SMTP(SMTP_HOST, SMTP_PORT, local_hostname="web.example.org", timeout=10) as client:
        client.send_message(message)


async def send_mail(message: EmailMessage) -> None:
    if IN_THREAD:
        await asyncio.to_thread(deliver, message)
    else:
        deliver(message)


async def invite(request):
    to = request.query_params.get("to", "someone@example.net")
    token = secrets.token_urlsafe(16)
    await send_mail(invitation(to, token))
    return JSONResponse({"invited": to, "token": token})


async def health(request):
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/", invite, methods=["GET", "POST"]), Route("/health", health)])

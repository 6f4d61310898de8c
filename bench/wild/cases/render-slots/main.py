"""Certificates as PDF; the pages are rendered by a service, a few at a time to spare its memory."""
import asyncio
import os
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

RENDERER = os.environ.get("RENDERER_URL", "http://127.0.0.1:9517/")
slots = asyncio.Semaphore(int(os.environ.get("MAX_RENDERINGS", "2")))
PAGE = "<h1>Certificate</h1><p>{name} has passed the course of {course}.</p>"


async def certificate(request):
    html = PAGE.format(name="Ada L.", course="first aid")
    async with slots:
        reply = await request.app.state.client.post(RENDERER, content=html.encode())
    return JSONResponse({"pdf": len(reply.content), "pages": 1})


@asynccontextmanager
async def lifespan(app):
    async with httpx.AsyncClient(timeout=60) as app.state.client:
        yield


app = Starlette(routes=[Route("/", certificate)], lifespan=lifespan)

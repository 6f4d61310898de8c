"""The weather, from the weather service."""
import os
from contextlib import asynccontextmanager

import aiohttp
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

WEATHER = os.environ.get("WEATHER_URL", "http://127.0.0.1:9412/")


@asynccontextmanager
async def lifespan(app):
    async with aiohttp.ClientSession() as app.state.client:
        yield


async def weather(request):
    async with request.app.state.client.get(WEATHER) as reply:
        return JSONResponse({"bytes": len(await reply.read())})


app = Starlette(routes=[Route("/", weather)], lifespan=lifespan)

"""An app that waits a little, as for a service, and then answers with JSON."""

import asyncio

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


async def index(_request):
    await asyncio.sleep(0.002)
    return JSONResponse({"items": ["soup", "bread"]})


app = Starlette(routes=[Route("/", index)])

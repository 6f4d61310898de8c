"""Documents from a storage service with a blocking client."""
import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import requests
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

STORAGE = os.environ.get("STORAGE_URL", "http://127.0.0.1:9114/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=200))


@asynccontextmanager
async def lifespan(app):
    if workers := os.environ.get("THREAD_POOL_SIZE"):
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(int(workers)))
    yield


async def document(request):
    reply = await asyncio.to_thread(session.get, STORAGE, timeout=10)
    return PlainTextResponse(reply.text)


app = Starlette(routes=[Route("/", document)], lifespan=lifespan)

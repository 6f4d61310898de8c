"""An older view, called through asgiref from an ASGI application."""
import os
import time

from asgiref.sync import sync_to_async
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


def older_view() -> str:
    time.sleep(0.05)  # it asks a device on a serial line
    return "reading 21.5"


view = sync_to_async(older_view, thread_sensitive=os.environ.get("THREAD_SENSITIVE", "1") == "1")


def prepared() -> None:
    """Give the loop as many threads as Channels does with ASGI_THREADS."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(int(os.environ.get("ASGI_THREADS", "20"))))


async def page(request):
    return PlainTextResponse(await view())


class Lifespan:
    def __init__(self, app):
        pass

    async def __aenter__(self):
        prepared()

    async def __aexit__(self, *exc):
        pass


app = Starlette(routes=[Route("/", page)], lifespan=Lifespan)

"""News for a chat: the reply waits until there is some, as it is meant to."""
import asyncio
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


class Feed:
    def __init__(self) -> None:
        self.number = 0
        self.changed = asyncio.Condition()

    async def tick(self) -> None:
        while True:
            await asyncio.sleep(0.25)  # somebody writes four times a second
            async with self.changed:
                self.number += 1
                self.changed.notify_all()


feed: Feed


@asynccontextmanager
async def lifespan(app):
    global feed
    feed = Feed()
    task = asyncio.create_task(feed.tick())
    yield
    task.cancel()


async def news(request):
    async with feed.changed:
        await feed.changed.wait()
        return JSONResponse({"event": feed.number})


app = Starlette(routes=[Route("/", news)], lifespan=lifespan)

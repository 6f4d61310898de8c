"""Jobs that another thread works on; the page waits for the result."""
import asyncio
import os
import threading
import time
from collections import deque

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

EVENTS = os.environ.get("WAIT_FOR_EVENT") == "1"
jobs: deque = deque()


class Job:
    def __init__(self) -> None:
        self.due = time.monotonic() + 0.05  # the machine that does it needs so long
        self.result: str | None = None
        self.loop = asyncio.get_running_loop()
        self.done = asyncio.Event()


def worker() -> None:
    while True:
        while jobs and jobs[0].due <= time.monotonic():
            job = jobs.popleft()
            job.result = "done"
            job.loop.call_soon_threadsafe(job.done.set)
        time.sleep(0.002)


threading.Thread(target=worker, daemon=True).start()


async def page(request):
    job = Job()
    jobs.append(job)
    if EVENTS:
        await job.done.wait()
    else:
        while job.result is None:
            await asyncio.sleep(0)
    return PlainTextResponse(job.result)


app = Starlette(routes=[Route("/", page)])

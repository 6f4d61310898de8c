"""Invoices as PDF; the renderer's client knows no asyncio."""
import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import requests
from aiohttp import web

RENDERER = os.environ.get("RENDERER_URL", "http://127.0.0.1:9404/")
executor = ThreadPoolExecutor(max_workers=int(os.environ.get("RENDER_THREADS", "4")))
own = threading.local()


def render():
    if not hasattr(own, "session"):
        own.session = requests.Session()
    return own.session.get(RENDERER, timeout=30).content


async def invoice(request):
    pdf = await asyncio.get_running_loop().run_in_executor(executor, render)
    return web.Response(body=pdf, content_type="application/pdf")


app = web.Application()
app.router.add_get("/", invoice)
if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]), access_log=None)

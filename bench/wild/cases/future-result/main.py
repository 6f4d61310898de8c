"""Runs a tool for a caller; tools are plain functions, in a pool of threads."""
import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import requests
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

UNITS = os.environ.get("UNITS_URL", "http://127.0.0.1:9406/")
AWAIT = os.environ.get("AWAIT_TOOLS") == "1"
pool = ThreadPoolExecutor(32, thread_name_prefix="tool")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=64))


def convert_units() -> dict:
    reply = session.get(UNITS, timeout=10)
    reply.raise_for_status()
    return {"tool": "convert-units", "answer": len(reply.content)}


async def call_tool(request):
    future = pool.submit(convert_units)
    if AWAIT:
        return JSONResponse(await asyncio.wrap_future(future))
    return JSONResponse(future.result(timeout=15))


app = Starlette(routes=[Route("/", call_tool)])

"""Where the engine of a cluster is to be found, asked of a bootstrap service."""
import os

import aiohttp
import requests
from fastapi import FastAPI

BOOTSTRAP = os.environ.get("BOOTSTRAP_URL", "http://127.0.0.1:9201/")
session = requests.Session()
waiting: list[aiohttp.ClientSession] = []
app = FastAPI()


if os.environ.get("HTTP_CLIENT") == "aiohttp":

    @app.get("/")
    async def engine_info():
        if not waiting:
            waiting.append(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)))
        async with waiting[0].get(BOOTSTRAP) as reply:
            return {"bytes": len(await reply.read())}

else:

    @app.get("/")
    async def engine_info():
        return {"bytes": len(session.get(BOOTSTRAP, timeout=5).content)}

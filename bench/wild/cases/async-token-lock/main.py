"""Calls a partner's API with a token that must be renewed."""
import asyncio
import os
import time
from contextlib import asynccontextmanager

import aiohttp
from fastapi import FastAPI

PARTNER = os.environ.get("PARTNER_URL", "http://127.0.0.1:9123/")
lock = asyncio.Lock()
token: dict[str, float] = {"until": 0.0}
client: aiohttp.ClientSession


@asynccontextmanager
async def lifespan(app: FastAPI):
    global client
    async with aiohttp.ClientSession() as client:
        yield


app = FastAPI(lifespan=lifespan)


async def renew() -> None:
    if time.monotonic() > token["until"]:
        async with client.post(PARTNER) as reply:
            await reply.read()
        token["until"] = time.monotonic() + 300


async def call() -> int:
    async with client.get(PARTNER) as reply:
        return len(await reply.read())


@app.get("/")
async def partner():
    if os.environ.get("NARROW_LOCK") == "1":
        async with lock:
            await renew()
        return {"bytes": await call()}
    async with lock:
        await renew()
        return {"bytes": await call()}

"""Calls a partner's API with a token that must be renewed."""
import asyncio
import os
import time
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

PARTNER = os.environ.get("PARTNER_URL", "http://127.0.0.1:9123/")
lock = asyncio.Lock()
token: dict[str, float] = {"until": 0.0}
client: httpx.AsyncClient


@asynccontextmanager
async def lifespan(app: FastAPI):
    global client
    client = httpx.AsyncClient(timeout=30)
    yield
    await client.aclose()


app = FastAPI(lifespan=lifespan)


async def renew() -> None:
    if time.monotonic() > token["until"]:
        await client.post(PARTNER)
        token["until"] = time.monotonic() + 300


async def call() -> int:
    return len((await client.get(PARTNER)).content)


@app.get("/")
async def partner():
    if os.environ.get("NARROW_LOCK") == "1":
        async with lock:
            await renew()
        return {"bytes": await call()}
    async with lock:
        await renew()
        return {"bytes": await call()}

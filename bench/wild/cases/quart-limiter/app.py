"""Addresses to coordinates: asks a provider, at the rate that its plan allows."""
import os

import httpx
from aiolimiter import AsyncLimiter
from quart import Quart

PROVIDER = os.environ.get("PROVIDER_URL", "http://127.0.0.1:9213/")
PER_SECOND = int(os.environ.get("PLAN_PER_SECOND", "30"))

app = Quart(__name__)
client = httpx.AsyncClient(timeout=20, limits=httpx.Limits(max_connections=200))
limiter = AsyncLimiter(PER_SECOND / 10, 0.1)


@app.get("/")
async def coordinates():
    async with limiter:
        reply = await client.get(PROVIDER)
    return {"found": reply.status_code == 200}

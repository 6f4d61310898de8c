"""Prices with tax, from the tax service; four questions to it at once."""
import asyncio
import os

import httpx
from litestar import Litestar, get

TAX = os.environ.get("TAX_URL", "http://127.0.0.1:9215/")
client = httpx.AsyncClient(timeout=20)
places = asyncio.Semaphore(4)


@get("/")
async def price() -> dict[str, int]:
    async with places:
        reply = await client.get(TAX)
    return {"cents": 1900 + len(reply.content)}


app = Litestar([price], logging_config=None)

"""Exchange rates, asked of a bank."""
import os
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

BANK = os.environ.get("BANK_URL", "http://127.0.0.1:9407/")
ONE_CLIENT = os.environ.get("ONE_CLIENT") == "1"


@asynccontextmanager
async def lifespan(app: FastAPI):
    async with httpx.AsyncClient(timeout=10) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


async def ask(client: httpx.AsyncClient) -> int:
    reply = await client.get(BANK)
    reply.raise_for_status()
    return len(reply.content)


@app.get("/")
async def rates():
    if ONE_CLIENT:
        return {"bytes": await ask(app.state.client)}
    async with httpx.AsyncClient(timeout=10) as client:
        return {"bytes": await ask(client)}

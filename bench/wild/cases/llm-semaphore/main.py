"""Asks a language model; bounded, so that the provider does not complain."""
import asyncio
import os
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:9116/")
slots = asyncio.Semaphore(int(os.environ.get("MODEL_SLOTS", "4")))
client: httpx.AsyncClient


@asynccontextmanager
async def lifespan(app: FastAPI):
    global client
    client = httpx.AsyncClient(timeout=30)
    yield
    await client.aclose()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def answer():
    async with slots:
        reply = await client.post(MODEL, json={"prompt": "hello"})
    return {"bytes": len(reply.content)}

"""Asks a language model; bounded, so that the provider does not complain."""
import asyncio
import os
from contextlib import asynccontextmanager

import aiohttp
from fastapi import FastAPI

MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:9116/")
slots = asyncio.Semaphore(int(os.environ.get("MODEL_SLOTS", "4")))
client: aiohttp.ClientSession


@asynccontextmanager
async def lifespan(app: FastAPI):
    global client
    async with aiohttp.ClientSession() as client:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def answer():
    async with slots, client.post(MODEL, json={"prompt": "hello"}) as reply:
        return {"bytes": len(await reply.read())}

"""Weather for a city, from another service."""
import os
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

WEATHER = os.environ.get("WEATHER_URL", "http://127.0.0.1:9106/")
client: httpx.AsyncClient


@asynccontextmanager
async def lifespan(app: FastAPI):
    global client
    limits = httpx.Limits(max_connections=int(os.environ.get("HTTP_CONNECTIONS", "3")))
    client = httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(10, pool=30))
    yield
    await client.aclose()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def weather():
    reply = await client.get(WEATHER)
    return {"bytes": len(reply.content)}

"""Rooms of a hotel, from the hotel's own reservation system."""
import os
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

RESERVATIONS = os.environ.get("RESERVATIONS_URL", "http://127.0.0.1:9310/")
client: httpx.AsyncClient


@asynccontextmanager
async def lifespan(app: FastAPI):
    global client
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    client = httpx.AsyncClient(limits=limits, timeout=30)
    yield
    await client.aclose()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def rooms():
    return {"bytes": len((await client.get(RESERVATIONS)).content)}

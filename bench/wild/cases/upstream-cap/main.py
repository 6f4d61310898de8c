"""Rooms of a hotel, from the hotel's own reservation system."""
import os
from contextlib import asynccontextmanager

import aiohttp
from fastapi import FastAPI

RESERVATIONS = os.environ.get("RESERVATIONS_URL", "http://127.0.0.1:9310/")
client: aiohttp.ClientSession


@asynccontextmanager
async def lifespan(app: FastAPI):
    global client
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as client:
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def rooms():
    async with client.get(RESERVATIONS) as reply:
        return {"bytes": len(await reply.read())}

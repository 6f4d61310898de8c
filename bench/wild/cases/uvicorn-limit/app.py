"""A gate to a model server: passes each question on."""
import os

import httpx
from fastapi import FastAPI

MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:9212/")
client = httpx.AsyncClient(timeout=20, limits=httpx.Limits(max_connections=500, max_keepalive_connections=500))
app = FastAPI()


@app.get("/")
async def answer():
    reply = await client.get(MODEL)
    return {"tokens": len(reply.content)}

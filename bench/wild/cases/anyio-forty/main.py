"""Quotes from an insurer, with a blocking client in plain functions."""
import os
from contextlib import asynccontextmanager

import anyio.to_thread
import requests
from fastapi import FastAPI

INSURER = os.environ.get("INSURER_URL", "http://127.0.0.1:9115/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=400))


@asynccontextmanager
async def lifespan(app: FastAPI):
    if tokens := os.environ.get("THREAD_TOKENS"):
        anyio.to_thread.current_default_thread_limiter().total_tokens = int(tokens)
    yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
def quote():
    return {"bytes": len(session.get(INSURER, timeout=20).content)}

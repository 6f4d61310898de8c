"""A counter of visits in Redis."""
import os

from fastapi import FastAPI
from redis import asyncio as redis

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6399/0")
POOLS = {"plain": redis.ConnectionPool, "blocking": redis.BlockingConnectionPool}
pool = POOLS[os.environ.get("REDIS_POOL", "plain")].from_url(URL, max_connections=4)
app = FastAPI()


@app.get("/")
async def visits():
    store = redis.Redis(connection_pool=pool)
    for page in ("home", "shop", "blog"):
        await store.incr("visits:" + page)
    return {"home": int(await store.get("visits:home"))}

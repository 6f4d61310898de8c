"""Consent to a use of data: the record, and the signature of another service."""
import os
from contextlib import asynccontextmanager

import aiohttp
import asyncpg
from fastapi import FastAPI

SIGNER = os.environ.get("SIGNER_URL", "http://127.0.0.1:9402/")
GIVE_BACK = os.environ.get("GIVE_BACK") == "1"
pool: asyncpg.Pool
client: aiohttp.ClientSession


@asynccontextmanager
async def lifespan(app: FastAPI):
    global pool, client
    pool = await asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=2, max_size=6)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=500)) as client:
        yield
    await pool.close()


app = FastAPI(lifespan=lifespan)


async def signature():
    async with client.get(SIGNER) as reply:
        return await reply.read()


@app.get("/")
async def consent():
    if GIVE_BACK:
        record = await pool.fetchval("select 17")
        return {"record": record, "signature": len(await signature())}
    async with pool.acquire() as connection:
        record = await connection.fetchval("select 17")
        return {"record": record, "signature": len(await signature())}

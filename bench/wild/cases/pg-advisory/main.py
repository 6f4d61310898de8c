"""Makes an account for a new user."""
import os
import random
from contextlib import asynccontextmanager

import aiohttp
import asyncpg
from fastapi import FastAPI

MAIL = os.environ.get("MAIL_URL", "http://127.0.0.1:9407/")
ONE_LOCK = os.environ.get("LOCK_EACH") != "1"
pool: asyncpg.Pool
client: aiohttp.ClientSession


@asynccontextmanager
async def lifespan(app: FastAPI):
    global pool, client
    pool = await asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=20, max_size=20)
    async with aiohttp.ClientSession() as client:
        yield
    await pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def account():
    user = random.randrange(1_000_000)
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("select pg_advisory_xact_lock($1)", 1 if ONE_LOCK else user)
        async with client.get(MAIL) as reply:
            await reply.read()
        return {"user": await connection.fetchval("select $1::bigint", user)}

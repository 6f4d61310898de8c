"""Is this e-mail address known? Asked at each sign-in."""
import os
import random
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI

pool: asyncpg.Pool


@asynccontextmanager
async def lifespan(app: FastAPI):
    global pool
    size = int(os.environ.get("PG_POOL", "5"))
    pool = await asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=size, max_size=size)
    yield
    await pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def known():
    address = f"User{random.randrange(200_000)}@Example.org"
    row = await pool.fetchrow(
        "select id from missing_index_users where lower(email) = lower($1)", address
    )
    return {"known": row is not None}

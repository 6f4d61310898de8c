"""Search in the minutes of a council."""
import os
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI

FIND = """
    select id, left(body, 60) as begins from minutes
    where to_tsvector('english', body) @@ plainto_tsquery('english', $1)
    order by id limit 5
"""


@asynccontextmanager
async def lifespan(app: FastAPI):
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=2, max_size=10) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def search(words: str = "lighthouse"):
    rows = await app.state.pool.fetch(FIND, words)
    return {"words": words, "found": [dict(row) for row in rows]}

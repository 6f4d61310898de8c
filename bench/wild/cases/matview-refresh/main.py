"""The ranking of the shops, from a materialized view that is kept fresh."""
import asyncio
import os
from contextlib import asynccontextmanager

import psycopg
from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool

URL = os.environ["DATABASE_URL"]
MODE = "concurrently" if os.environ.get("REFRESH_CONCURRENTLY") == "1" else ""
pool = AsyncConnectionPool(URL, min_size=20, max_size=20, open=False, kwargs={"autocommit": True})


async def keep_fresh():
    async with await psycopg.AsyncConnection.connect(URL, autocommit=True) as connection:
        while True:
            await connection.execute(f"refresh materialized view {MODE} fifth_ranking")
            await asyncio.sleep(0.05)


@asynccontextmanager
async def lifespan(app: FastAPI):
    await pool.open(wait=True)
    task = asyncio.create_task(keep_fresh())
    yield
    task.cancel()
    await pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def ranking():
    async with pool.connection() as connection:
        cursor = await connection.execute(
            "select shop, total, median from fifth_ranking order by total desc limit 10"
        )
        rows = await cursor.fetchall()
    return [{"shop": shop, "total": total, "median": median} for shop, total, median in rows]

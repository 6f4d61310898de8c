"""Stock levels of a shop."""
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool

pool = AsyncConnectionPool(
    os.environ["DATABASE_URL"],
    min_size=int(os.environ.get("PG_MIN", "2")),
    max_size=int(os.environ.get("PG_MAX", "4")),
    open=False,
)


@asynccontextmanager
async def lifespan(app: FastAPI):
    await pool.open(wait=True)
    yield
    await pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def stock():
    async with pool.connection() as connection:
        cursor = await connection.execute("select pg_sleep(0.05), 42 as pieces")
        row = await cursor.fetchone()
    return {"pieces": row[1]}

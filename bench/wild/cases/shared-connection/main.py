"""Messages of a chat; one connection to the database for all."""
import os
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI


@asynccontextmanager
async def lifespan(app: FastAPI):
    connect = asyncpg.create_pool if os.environ.get("POOL") == "1" else asyncpg.connect
    app.state.database = await connect(os.environ["DATABASE_URL"])
    yield
    await app.state.database.close()


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def messages():
    return {"messages": await app.state.database.fetchval("select 8 from pg_sleep(0.005)")}

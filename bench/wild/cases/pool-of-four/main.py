"""One shelf of a library, with the pool of four connections that the operator grants."""
import os
import random
import re
from contextlib import asynccontextmanager

from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

pool = AsyncConnectionPool(
    os.environ["DATABASE_URL"], min_size=4, max_size=4, open=False, kwargs={"autocommit": True}
)


class Book(BaseModel):
    id: int
    title: str
    slug: str
    price: str


class Shelf(BaseModel):
    shelf: int
    books: list[Book]


@asynccontextmanager
async def lifespan(app: FastAPI):
    await pool.open(wait=True)
    yield
    await pool.close()


app = FastAPI(lifespan=lifespan)


@app.get("/", response_model=Shelf)
async def shelf():
    number = random.randrange(100)
    async with pool.connection() as connection:
        cursor = await connection.execute("select id, title, cents from fifth_books where shelf = %s", [number])
        rows = await cursor.fetchall()
    books = [
        Book(id=n, title=title, slug=re.sub(r"[^a-z0-9]+", "-", title.lower()), price=f"{cents / 100:.2f}")
        for n, title, cents in rows
    ]
    return Shelf(shelf=number, books=sorted(books, key=lambda book: (book.price, book.title)))

"""Where a parcel is. Every request gets a number in the audit trail, and the trail has no gaps."""
import asyncio
import itertools
import os
import time
from collections import deque
from contextlib import asynccontextmanager

from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route

pool = AsyncConnectionPool(os.environ["DATABASE_URL"], min_size=20, max_size=20, open=False)


class AuditTrail:
    """Notes when each request began and ended, in the order of their numbers."""

    def __init__(self, app):
        self.app = app
        self.turn = asyncio.Lock()
        self.numbers = itertools.count(1)
        self.trail = deque(maxlen=5000)
        self.whole = os.environ.get("AUDIT_ORDER", "whole") == "whole"

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if self.whole:
            async with self.turn:
                await self.noted(scope, receive, send, next(self.numbers))
        else:
            async with self.turn:
                number = next(self.numbers)
            await self.noted(scope, receive, send, number)

    async def noted(self, scope, receive, send, number):
        began = time.time()
        await self.app(scope, receive, send)
        self.trail.append((number, scope["path"], began, time.time()))


async def parcel(request):
    async with pool.connection() as connection:
        cursor = await connection.execute("select pg_sleep(0.03), 'in transit' as state")
        row = await cursor.fetchone()
    return JSONResponse({"parcel": 4711, "state": row[1]})


@asynccontextmanager
async def lifespan(app):
    await pool.open(wait=True)
    yield
    await pool.close()


app = Starlette(routes=[Route("/", parcel)], middleware=[Middleware(AuditTrail)], lifespan=lifespan)

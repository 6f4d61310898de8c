"""A gateway to tools, at half its size: 2 ms of computing, and 10 ms for the tool's reply."""

import asyncio

from fastapi import FastAPI

app = FastAPI()
# With what FastAPI itself takes, some 54 MiB in each worker.
HELD = b"x" * 27_000_000


@app.get("/")
async def tool():
    await asyncio.sleep(0.010)  # the tool
    return {"result": sum(n * n for n in range(64_000))}

"""A shop whose name is in a file beside its project."""

from pathlib import Path

from fastapi import FastAPI

app = FastAPI()


@app.get("/")
async def index():
    return {"name": Path("name.txt").read_text()}

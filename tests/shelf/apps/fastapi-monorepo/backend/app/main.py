from fastapi import FastAPI

from app.core.config import settings

app = FastAPI(title=settings["name"])


@app.get("/")
async def root():
    return {"name": settings["name"]}

"""Where the engine of a cluster is to be found, asked of a bootstrap service."""
import os

import httpx
import requests
from fastapi import FastAPI

BOOTSTRAP = os.environ.get("BOOTSTRAP_URL", "http://127.0.0.1:9201/")
session = requests.Session()
client = httpx.AsyncClient(timeout=10)
app = FastAPI()


if os.environ.get("HTTP_CLIENT") == "httpx":

    @app.get("/")
    async def engine_info():
        return {"bytes": len((await client.get(BOOTSTRAP)).content)}

else:

    @app.get("/")
    async def engine_info():
        return {"bytes": len(session.get(BOOTSTRAP, timeout=5).content)}

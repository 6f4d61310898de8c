"""A person in a knowledge base, from its query service."""
import os

import requests
from flask import Flask
from requests.adapters import HTTPAdapter

QUERIES = os.environ.get("QUERIES_URL", "http://127.0.0.1:9401/")
size = int(os.environ.get("HTTP_POOL", "4"))
session = requests.Session()
session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=size, pool_block=True))
app = Flask(__name__)


@app.get("/")
def person():
    reply = session.get(QUERIES, timeout=30)
    return {"bytes": len(reply.content)}

"""A reading room: pages come from an archive that is far away."""
import os

import requests
from flask import Flask, Response

ARCHIVE = os.environ.get("ARCHIVE_URL", "http://127.0.0.1:9520/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=100))
app = Flask(__name__)


@app.get("/")
@app.get("/page/<int:number>")
def page(number=1):
    reply = session.get(ARCHIVE, params={"page": number}, timeout=10)
    reply.raise_for_status()
    return Response(reply.content, content_type="text/plain")


@app.get("/health")
def health():
    return "ok"

"""A gateway to an older service that takes its time."""
import os

import requests
from flask import Flask

LEGACY = os.environ.get("LEGACY_URL", "http://127.0.0.1:9119/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=100))
app = Flask(__name__)


@app.get("/")
def page():
    return {"bytes": len(session.get(LEGACY, timeout=10).content)}

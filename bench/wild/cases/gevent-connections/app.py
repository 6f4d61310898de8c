"""Status of deliveries, from the carrier's service."""
import os

import requests
from flask import Flask

CARRIER = os.environ.get("CARRIER_URL", "http://127.0.0.1:9113/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=200))
app = Flask(__name__)


@app.get("/")
def status():
    return {"bytes": len(session.get(CARRIER, timeout=10).content)}

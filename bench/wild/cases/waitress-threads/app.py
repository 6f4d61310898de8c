"""Prices from a supplier."""
import os

import requests
from flask import Flask

SUPPLIER = os.environ.get("SUPPLIER_URL", "http://127.0.0.1:9118/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=200))
app = Flask(__name__)


@app.get("/")
def price():
    return {"bytes": len(session.get(SUPPLIER, timeout=10).content)}

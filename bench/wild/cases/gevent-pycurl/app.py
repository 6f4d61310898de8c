"""The tariff of a grid operator, for a meter; the client of curl is what the old library came with."""
import io
import os

import pycurl
import requests
from flask import Flask

TARIFF = os.environ.get("TARIFF_URL", "http://127.0.0.1:9514/")
CURL = os.environ.get("CLIENT", "curl") == "curl"
app = Flask(__name__)
handle = pycurl.Curl()
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=50))


def fetch(url: str) -> bytes:
    if not CURL:
        return session.get(url, timeout=10).content
    body = io.BytesIO()
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.TIMEOUT, 10)
    handle.setopt(pycurl.NOSIGNAL, 1)
    handle.setopt(pycurl.WRITEFUNCTION, body.write)
    handle.perform()
    return body.getvalue()


@app.get("/")
def tariff():
    return {"tariff": "day", "bytes": len(fetch(TARIFF))}

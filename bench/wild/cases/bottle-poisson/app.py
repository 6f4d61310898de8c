"""The weather for a place, from a service that knows it."""
import os

import requests
from bottle import Bottle, request

SERVICE = os.environ.get("WEATHER_URL", "http://127.0.0.1:9526/")
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=20))
app = Bottle()


@app.get("/")
def weather():
    place = request.query.get("place") or "De Bilt"
    reply = session.get(SERVICE, params={"place": place}, timeout=5)
    reply.raise_for_status()
    return {"place": place, "report": len(reply.content)}


@app.get("/health")
def health():
    return "ok"

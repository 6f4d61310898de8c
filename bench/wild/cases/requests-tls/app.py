"""Works of an author, from a catalogue that speaks TLS."""
import os

import requests
from flask import Flask

CATALOGUE = os.environ.get("CATALOGUE_URL", "https://127.0.0.1:9213/")
CA = os.environ.get("CATALOGUE_CA", "/etc/ssl/certs/ca-certificates.crt")
session = requests.Session() if os.environ.get("KEEP_SESSION") == "1" else None
app = Flask(__name__)


@app.get("/")
def works():
    reply = (session or requests).get(CATALOGUE, verify=CA, timeout=10)
    return {"bytes": len(reply.content)}

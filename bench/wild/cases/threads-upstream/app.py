"""Answers of a language model that runs on a machine of the office."""
import os
import threading

import requests
from flask import Flask

MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:9410/")
own = threading.local()
app = Flask(__name__)


@app.get("/")
def answer():
    if not hasattr(own, "session"):
        own.session = requests.Session()
    return {"bytes": len(own.session.get(MODEL, timeout=60).content)}

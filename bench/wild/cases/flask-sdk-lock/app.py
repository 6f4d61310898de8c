"""Predictions from a model server; its SDK is not safe for threads."""
import os
import threading

import requests
from flask import Flask

MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:9122/")
app = Flask(__name__)
shared = requests.Session()
shared_lock = threading.Lock()
own = threading.local()


def predict() -> bytes:
    if os.environ.get("SDK_PER_THREAD") == "1":
        if not hasattr(own, "session"):
            own.session = requests.Session()
        return own.session.get(MODEL, timeout=10).content
    with shared_lock:
        return shared.get(MODEL, timeout=10).content


@app.get("/")
def prediction():
    return {"bytes": len(predict())}

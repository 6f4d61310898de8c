"""Results of a search engine that asks another one."""
import os
import threading

import requests
from flask import Flask

ENGINE = os.environ.get("ENGINE_URL", "http://127.0.0.1:9403/")
own = threading.local()
app = Flask(__name__)


@app.get("/")
def results():
    if not hasattr(own, "session"):
        own.session = requests.Session()
    return {"bytes": len(own.session.get(ENGINE, timeout=30).content)}

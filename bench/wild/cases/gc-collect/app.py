"""A SOAP-like service with a large table in memory."""
import gc
import os

from flask import Flask

TABLE = {n: {"id": n, "names": [f"n{n}", f"m{n}"], "links": {}} for n in range(60_000)}
app = Flask(__name__)


@app.get("/")
def ping():
    return {"rows": len(TABLE)}


@app.teardown_request
def clean(error):
    if os.environ.get("COLLECT", "1") == "1":
        gc.collect()

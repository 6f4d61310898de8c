"""A function's gateway: passes a request on to the function, and its answer back."""
import os

import urllib3
from flask import Flask, Response, request

FUNCTION = os.environ.get("FUNCTION_URL", "http://127.0.0.1:9513/")
http = urllib3.PoolManager(maxsize=100, timeout=10)
app = Flask(__name__)


@app.route("/", methods=["GET", "POST"])
def call():
    reply = http.request(request.method, FUNCTION, body=request.get_data() or None)
    return Response(reply.data, status=reply.status, content_type=reply.headers.get("Content-Type"))


@app.get("/healthz")
def health():
    return "OK"

"""An API for partners, with a limit for each address. It runs behind a proxy."""
import os

from flask import Flask
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

app = Flask(__name__)
limiter = Limiter(
    get_remote_address,
    app=app,
    default_limits=[os.environ.get("RATE_LIMIT", "50 per second")],
    storage_uri="memory://",
)


@app.get("/")
def partners():
    return {"partners": ["a", "b"]}

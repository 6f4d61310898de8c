import os

import redis
from flask import Flask

app = Flask(__name__)
store = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6399/0"))


@app.get("/")
def visits():
    return "known" if store.incr("visits") else "unknown"

"""Sizes of the queues of a task broker."""
import os

import redis
from flask import Flask

store = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6399/1"))
app = Flask(__name__)


@app.get("/")
def queues():
    if os.environ.get("QUEUE_SET") == "1":
        names = store.smembers("queues")
    else:
        names = store.keys("queue:*")
    return {"queues": len(names)}

"""Takes an item out of a shop's stock."""
import os
import random
import threading

import redis
import requests
from flask import Flask

WAREHOUSE = os.environ.get("WAREHOUSE_URL", "http://127.0.0.1:9406/")
store = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6399/2"))
own = threading.local()
app = Flask(__name__)


def lock_name(item):
    return f"stock:{item}" if os.environ.get("LOCK_EACH") == "1" else "stock"


@app.get("/")
def take():
    if not hasattr(own, "session"):
        own.session = requests.Session()
    item = random.randrange(10_000)
    with store.lock(lock_name(item), timeout=30, sleep=0.05):
        own.session.get(WAREHOUSE, timeout=10)
        left = store.decr(f"left:{item}")
    return {"item": item, "left": left}

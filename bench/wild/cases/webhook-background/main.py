"""Bookings; a partner is told of each after the answer went out."""
import os
import queue
import threading
import time

import requests
from fastapi import BackgroundTasks, FastAPI

PARTNER = os.environ.get("PARTNER_URL", "http://127.0.0.1:9513/")
BATCHES = os.environ.get("WEBHOOK_BATCHES") == "1"
app = FastAPI()
session = requests.Session()
session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=100))
waiting: queue.SimpleQueue = queue.SimpleQueue()


def tell(events: list[dict]) -> None:
    session.post(PARTNER, json=events, timeout=30)


def sender() -> None:
    while True:
        events = [waiting.get()]
        while len(events) < 1000 and not waiting.empty():
            events.append(waiting.get())
        tell(events)


if BATCHES:
    threading.Thread(target=sender, daemon=True).start()


@app.get("/")
def book(background: BackgroundTasks):
    event = {"type": "booking.made", "at": time.time()}
    if BATCHES:
        waiting.put(event)
    else:
        background.add_task(tell, [event])
    return {"booked": True}

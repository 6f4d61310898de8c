"""A mailbox; its state is a file with a lock."""
import fcntl
import os
import tempfile

import requests
from flask import Flask

BACKEND = os.environ.get("BACKEND_URL", "http://127.0.0.1:9408/")
STATE = os.path.join(tempfile.gettempdir(), f"mailbox-state-{os.getuid()}")
session = requests.Session()
app = Flask(__name__)


@app.get("/")
def mailbox():
    with open(STATE, "a+") as state:
        fcntl.flock(state, fcntl.LOCK_EX)
        state.seek(0)
        known = len(state.read())
        if os.environ.get("UNLOCK_FIRST") == "1":
            fcntl.flock(state, fcntl.LOCK_UN)
        mails = session.get(BACKEND, timeout=30).content
    return {"known": known, "bytes": len(mails)}

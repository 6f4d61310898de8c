"""Users of a small site."""
import os
import sqlite3
import threading
from pathlib import Path

from flask import Flask

PATH = Path(__file__).parent / "site.sql"
own = threading.local()
shared: list[sqlite3.Connection] = []
app = Flask(__name__)


def opened() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(PATH.read_text())
    return connection


def database() -> sqlite3.Connection:
    if os.environ.get("CONNECTION_PER_THREAD") == "1":
        if not hasattr(own, "connection"):
            own.connection = opened()
        return own.connection
    if not shared:
        shared.append(opened())
    return shared[0]


@app.get("/")
def user():
    row = database().execute("select name from users where id = 2").fetchone()
    return {"name": row[0]}

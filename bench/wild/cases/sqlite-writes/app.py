"""Notes of a task queue: every request adds a row."""
import os
import sqlite3
from pathlib import Path

from flask import Flask

PATH = Path(os.environ.get("NOTES_DB", "notes.db"))
WAL = os.environ.get("NOTES_WAL") == "1"
app = Flask(__name__)


def database() -> sqlite3.Connection:
    connection = sqlite3.connect(PATH, timeout=float(os.environ.get("NOTES_TIMEOUT", "0.5")))
    if WAL:
        connection.execute("pragma journal_mode=wal")
        connection.execute("pragma synchronous=normal")
    return connection


def add_note(connection: sqlite3.Connection) -> int:
    with connection:
        return connection.execute("insert into notes (text) values (?)", ("x" * 200,)).lastrowid


with database() as start:
    start.execute("create table if not exists notes (id integer primary key, text text)")
start.close()


@app.get("/")
def note():
    connection = database()
    try:
        return {"id": add_note(connection)}
    finally:
        connection.close()

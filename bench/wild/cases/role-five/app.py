"""Votes of an assembly, read with a role that the host of the database limits to five connections."""
import logging
import os
import queue
from contextlib import contextmanager

import psycopg2
from flask import Flask

app = Flask(__name__)
logging.basicConfig(level=logging.INFO)
idle: queue.Queue = queue.Queue()
SHARED = os.environ.get("SHARE_CONNECTIONS") == "1"
for _ in range(2):
    idle.put(None)


def connect():
    connection = psycopg2.connect(os.environ["DATABASE_URL"], user="fifth_votes")
    connection.autocommit = True
    return connection


@contextmanager
def database():
    if not SHARED:
        connection = connect()
        try:
            yield connection
        finally:
            connection.close()
        return
    connection = idle.get() or connect()
    try:
        yield connection
    finally:
        idle.put(connection)


@app.get("/")
def votes():
    with database() as connection, connection.cursor() as cursor:
        cursor.execute("select pg_sleep(0.02), 212 as yes, 148 as no")
        _, yes, no = cursor.fetchone()
    return {"yes": yes, "no": no}

"""Security notices, out of PostgreSQL."""
import os

import psycopg2
import psycopg2.extensions
from flask import Flask
from gevent.socket import wait_read, wait_write


def wait(connection):
    while True:
        state = connection.poll()
        if state == psycopg2.extensions.POLL_OK:
            return
        (wait_read if state == psycopg2.extensions.POLL_READ else wait_write)(connection.fileno())


if os.environ.get("GREEN") == "1":
    psycopg2.extensions.set_wait_callback(wait)
free = []
app = Flask(__name__)


@app.get("/")
def notices():
    connection = free.pop() if free else psycopg2.connect(os.environ["DATABASE_URL"])
    with connection, connection.cursor() as cursor:
        cursor.execute("select 31 from pg_sleep(0.02)")
        count = cursor.fetchone()[0]
    free.append(connection)
    return {"notices": count}

"""A query that waits `?n=` milliseconds in PostgreSQL, over a pool of FAULTY_POOL connections a process."""

import os
import queue

import psycopg

SIZE = int(os.environ.get("FAULTY_POOL", "16"))
POOL = queue.LifoQueue()
for _ in range(SIZE):
    POOL.put(None)


def app(environ, start_response):
    query = environ.get("QUERY_STRING", "")
    wait(int(query[2:]) if query.startswith("n=") and query[2:].isdigit() else 20)
    body = b"done\n"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def wait(ms):
    connection = POOL.get()
    try:
        connection = connection or psycopg.connect(autocommit=True)
        connection.execute("SELECT pg_sleep(%s)", (ms / 1000,))
    finally:
        POOL.put(connection)

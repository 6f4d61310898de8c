"""A desk for databases: 2 ms of computing, and a query of 20 ms on the connection that its process keeps."""

import time

from flask import Flask

app = Flask(__name__)
CONNECTIONS = {"desk": 0}  # of users, in the memory of the process: the reason for one worker


@app.get("/")
def query():
    CONNECTIONS["desk"] += 1
    time.sleep(0.020)  # a query
    total = sum(n * n for n in range(64_000))
    return f"{total}\n", {"Content-Type": "text/plain"}

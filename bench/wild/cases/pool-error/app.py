"""Search for addresses, with a pool of connections."""
import os

import psycopg2.pool
from flask import Flask, jsonify, request

pool = psycopg2.pool.ThreadedConnectionPool(1, int(os.environ.get("DATABASE_MAXCONN", "5")), os.environ["DATABASE_URL"])
app = Flask(__name__)


def find(words: str):
    connection = pool.getconn()
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("select %s, 52.09, 5.12 from pg_sleep(0.04)", (words,))
            return cursor.fetchall()
    finally:
        pool.putconn(connection)


@app.get("/")
def search():
    found = find(request.args.get("q", "Dom Utrecht"))
    return jsonify([{"address": address, "lat": float(lat), "lon": float(lon)} for address, lat, lon in found])


@app.get("/health")
def health():
    return "ok"

"""Opening hours; a few people ask."""
import os

import psycopg2
import psycopg2.pool
from flask import Flask

pool = psycopg2.pool.ThreadedConnectionPool(4, 4, os.environ["DATABASE_URL"])
app = Flask(__name__)


@app.get("/")
def hours():
    connection = pool.getconn()
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("select 9, 17 from pg_sleep(0.005)")
            opens, closes = cursor.fetchone()
    finally:
        pool.putconn(connection)
    return {"opens": opens, "closes": closes}

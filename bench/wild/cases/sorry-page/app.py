"""A museum's objects, with a friendly page where something goes wrong."""
import os
from html import escape

from flask import Flask
from psycopg_pool import ConnectionPool

pool = ConnectionPool(
    os.environ["DATABASE_URL"],
    min_size=1,
    max_size=int(os.environ.get("POOL_SIZE", "2")),
    timeout=0.25,
    open=True,
)
app = Flask(__name__)


@app.errorhandler(Exception)
def sorry(error):
    app.logger.debug("a visitor saw the page for errors: %s", error)
    return "<!doctype html><title>Sorry</title><p>We are very busy. Please come back later."


def objects(room: int):
    with pool.connection() as connection:
        return connection.execute(
            "select n, 'Vase ' || n, 1700 + n from generate_series(1, 8) n, pg_sleep(0.08) where n > %s", (room,)
        ).fetchall()


@app.get("/")
def page():
    rows = "".join(f"<li>{number}: {escape(name)}, {year}" for number, name, year in objects(0))
    return f"<!doctype html><title>Objects</title><ol>{rows}</ol>"

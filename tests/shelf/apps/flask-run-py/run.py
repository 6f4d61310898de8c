import os
import sqlite3
from pathlib import Path

from flask import Flask, g

DATABASE = Path(__file__).with_name("notes.sqlite3")
app = Flask(__name__)


def database():
    if "database" not in g:
        g.database = sqlite3.connect(DATABASE)
    return g.database


@app.teardown_appcontext
def close(_error):
    if "database" in g:
        g.pop("database").close()


with app.app_context():
    database().execute("create table if not exists notes (id integer primary key, text text)")
    if not database().execute("select 1 from notes").fetchone():
        database().execute("insert into notes (text) values ('buy milk')")
    database().commit()


@app.route("/")
def notes():
    rows = database().execute("select text from notes order by id limit 1")
    return "\n".join(text for (text,) in rows) + "\n"


if __name__ == "__main__":
    app.run(host="0.0.0.0", port=int(os.environ.get("PORT", 5000)))

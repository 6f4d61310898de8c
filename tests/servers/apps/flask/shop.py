"""A shop that counts its visits in a file of SQLite, and shows a menu of another file."""

import sqlite3
from pathlib import Path

from flask import Flask, render_template

app = Flask(__name__)


@app.get("/")
def index():
    with sqlite3.connect("data/shop.db", timeout=30) as db:
        db.execute("create table if not exists hits (n integer)")
        db.execute("insert into hits values (1)")
        (count,) = db.execute("select count(*) from hits").fetchone()
    return render_template("page.html", menu=Path("data/menu.txt").read_text(), is_counted=count > 0)

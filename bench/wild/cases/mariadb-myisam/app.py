"""Articles, each with a counter of views that every page raises."""
import os
import random
import threading
import time

import pymysql
from flask import Flask

ENGINE = os.environ.get("TABLE_ENGINE", "MyISAM")
ARTICLES = 400
kept = threading.local()


def connection():
    if not hasattr(kept, "connection"):
        kept.connection = pymysql.connect(host="127.0.0.1", port=9211, user="root", autocommit=True)
    return kept.connection


def prepare():
    for _ in range(60):
        try:
            with connection().cursor() as cursor:
                cursor.execute("create database if not exists wild")
                cursor.execute("drop table if exists wild.article")
                cursor.execute(
                    f"create table wild.article (id int primary key, views int not null) engine={ENGINE}"
                )
                rows = [(number, 0) for number in range(ARTICLES)]
                cursor.executemany("insert into wild.article values (%s, %s)", rows)
            return
        except pymysql.OperationalError:
            time.sleep(0.2)
    raise SystemExit("no database")


prepare()
app = Flask(__name__)


@app.get("/")
def article():
    # sleep() stands for the disk of the report's server.
    with connection().cursor() as cursor:
        cursor.execute(
            "update wild.article set views = views + 1 where id = %s and sleep(0.02) = 0",
            (random.randrange(ARTICLES),),
        )
    return {"counted": True}

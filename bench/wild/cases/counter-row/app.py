"""An article, and how often it was read."""
import os
import threading

import psycopg2
import requests
from flask import Flask

RENDERER = os.environ.get("RENDERER_URL", "http://127.0.0.1:9125/")
app = Flask(__name__)
own = threading.local()


def database():
    if not hasattr(own, "connection"):
        own.connection = psycopg2.connect(os.environ["DATABASE_URL"])
        own.http = requests.Session()
    return own.connection


@app.get("/")
def article():
    connection = database()
    with connection.cursor() as cursor:
        cursor.execute("update counter_row_articles set views = views + 1 where id = 1 returning views")
        views = cursor.fetchone()[0]
    if os.environ.get("COMMIT_FIRST") == "1":
        connection.commit()
    body = own.http.get(RENDERER, timeout=10).content
    connection.commit()
    return {"views": views, "bytes": len(body)}

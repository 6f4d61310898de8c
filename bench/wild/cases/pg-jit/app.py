"""A shop's filter: the variants of a garment, from its lists."""
import os
import random
import threading

import psycopg
from flask import Flask

VARIANTS = """
select tag, colour, size
from garment
cross join regexp_split_to_table(tags, ',') tag
cross join regexp_split_to_table(colours, ',') colour
cross join regexp_split_to_table(sizes, ',') size
where id = %s
order by tag, colour, size
"""
app = Flask(__name__)
kept = threading.local()


def connection():
    if not hasattr(kept, "connection"):
        kept.connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    return kept.connection


@app.get("/")
def variants():
    rows = connection().execute(VARIANTS, (random.randint(1, 500),)).fetchall()
    return {"variants": len(rows)}

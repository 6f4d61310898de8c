"""Sales by month and region, always up to date."""
import os
import threading

import psycopg2
from flask import Flask

own = threading.local()
app = Flask(__name__)
REPORT = """
select region, month, sum(amount)::float, count(distinct customer)
from pg_report_sales group by region, month order by region, month
"""


@app.get("/")
def report():
    if not hasattr(own, "connection"):
        own.connection = psycopg2.connect(os.environ["DATABASE_URL"])
        own.connection.autocommit = True
    with own.connection.cursor() as cursor:
        cursor.execute(REPORT)
        return {"rows": cursor.fetchall()}

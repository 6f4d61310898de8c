"""Meter readings of a household; a yearly statement now and then."""
import itertools
import time

from flask import Flask

app = Flask(__name__)
asked = itertools.count(1)


@app.get("/")
def reading():
    if next(asked) % 40 == 0:
        time.sleep(0.5)  # the archive answers a statement of a year
        return {"kind": "statement", "kwh": 3120}
    time.sleep(0.004)
    return {"kind": "reading", "kwh": 8}

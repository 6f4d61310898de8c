"""Reports; now and then one is long."""
import itertools
import time

from flask import Flask

numbers = itertools.count(1)
app = Flask(__name__)


@app.get("/")
def report():
    long = next(numbers) % 25 == 0
    time.sleep(2.5 if long else 0.02)  # another system works it out
    return {"long": long}

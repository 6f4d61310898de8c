"""The last readings of a sensor."""
import itertools
import sqlite3

from flask import Flask, jsonify

app = Flask(__name__)
counter = itertools.count()
database = sqlite3.connect("file:readings.db?mode=ro", uri=True, check_same_thread=False)


@app.get("/")
def latest():
    sensor = next(counter) % 400
    rows = database.execute(
        "select taken, celsius from reading where sensor = ? order by taken desc limit 10", (sensor,)
    ).fetchall()
    return jsonify(sensor=sensor, readings=[{"at": taken, "celsius": celsius} for taken, celsius in rows])

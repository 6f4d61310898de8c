"""Ratings for a list of films."""
import time

from flask import Flask

app = Flask(__name__)


@app.get("/")
def ratings():
    time.sleep(0.004)  # a key-value store on the same network
    return {"ratings": [4, 5, 3]}

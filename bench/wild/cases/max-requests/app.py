"""A big application: it takes a while to load."""
import time

from flask import Flask


def load() -> dict[int, str]:
    time.sleep(1.5)  # models and plug-ins, from a slow disk
    return {n: f"model {n}" for n in range(1000)}


MODELS = load()
app = Flask(__name__)


@app.get("/")
def page():
    return {"models": len(MODELS), "first": MODELS[0]}

from pathlib import Path

from flask import Flask

app = Flask(__name__)


@app.route("/")
def greet():
    return Path("greeting.txt").read_text()

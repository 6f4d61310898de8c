"""A curriculum vitae out of a record."""
import os
from pathlib import Path

from flask import Flask
from jinja2 import Environment, FileSystemLoader

FOLDER = Path(__file__).parent / "templates"
PAPERS = [{"title": f"On subject {n}", "year": 1990 + n, "authors": ["A. Author", "B. Writer"]} for n in range(12)]
app = Flask(__name__)


def environment() -> Environment:
    return Environment(loader=FileSystemLoader(FOLDER), autoescape=True)


shared = environment() if os.environ.get("SHARED_ENVIRONMENT") == "1" else None


@app.get("/")
def cv():
    template = (shared or environment()).get_template("cv.html")
    return template.render(name="A. Author", papers=PAPERS)

"""A score for a text: pure computation."""
from flask import Flask

TEXT = "the quick brown fox jumps over the lazy dog " * 40
app = Flask(__name__)


def score(text: str) -> int:
    total = 0
    for n, letter in enumerate(text):
        total = (total * 31 + ord(letter) * n) % 1_000_003
    for _ in range(20):
        total = (total + sum(ord(letter) for letter in text)) % 1_000_003
    return total


@app.get("/")
def page():
    return {"score": score(TEXT)}

"""Tickets as QR codes."""
import random

import segno
from flask import Flask, Response

app = Flask(__name__)


@app.get("/")
def ticket():
    number = random.getrandbits(256)
    code = segno.make(f"https://tickets.example.org/entry/{number:064x}?row=12&seat=7&day=2026-11-29")
    return Response(code.svg_inline(scale=4), mimetype="image/svg+xml")

"""Thumbnails of uploads, each in the size that is asked for."""
import io

from flask import Flask, Response
from PIL import Image


def upload() -> bytes:
    picture = Image.effect_mandelbrot((1200, 900), (-2.0, -1.5, 1.0, 1.5), 40).convert("RGB")
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=85)
    return file.getvalue()


UPLOAD = upload()
app = Flask(__name__)


@app.get("/")
def thumbnail():
    with Image.open(io.BytesIO(UPLOAD)) as picture:
        small = picture.resize((320, 240), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=80)
    return Response(file.getvalue(), mimetype="image/jpeg")

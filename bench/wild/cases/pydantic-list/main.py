"""Measurements of a station: a long list."""
import os
from datetime import datetime, timedelta

import orjson
from fastapi import FastAPI, Response
from pydantic import BaseModel


class Measurement(BaseModel):
    at: datetime
    station: str
    values: list[float]
    unit: str | None = None
    tags: dict[str, str] = {}


START = datetime(2024, 1, 1)
ROWS = [
    {
        "at": START + timedelta(minutes=n),
        "station": f"s{n % 7}",
        "values": [n / 3, n / 7, n / 11],
        "unit": "m/s",
        "tags": {"quality": "good", "source": "radio"},
    }
    for n in range(1500)
]
app = FastAPI()


if os.environ.get("DIRECT_RESPONSE") == "1":

    @app.get("/")
    async def measurements():
        return Response(orjson.dumps(ROWS), media_type="application/json")

else:

    @app.get("/", response_model=list[Measurement])
    async def measurements():
        return [Measurement(**row) for row in ROWS]

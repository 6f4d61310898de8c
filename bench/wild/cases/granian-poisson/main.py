"""Departures at a bus stop."""
import asyncio
import time

from fastapi import FastAPI

TIMETABLE = {stop: [(stop * 7 + line * 11) % 60 for line in range(12)] for stop in range(900)}
app = FastAPI()


@app.get("/")
async def departures(stop: int = 17):
    await asyncio.sleep(0.008)  # the delays of today, from the depot
    minute = time.gmtime().tm_min
    due = sorted((leaves - minute) % 60 for leaves in TIMETABLE[stop % 900])
    return {"stop": stop, "due": due[:5]}

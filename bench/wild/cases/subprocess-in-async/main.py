"""Checks a generated script with a linter."""
import asyncio
import os
import subprocess

from fastapi import FastAPI

SCRIPT = "#!/bin/sh\necho ready\n"
app = FastAPI()


def check():
    return subprocess.run(["sh", "check.sh"], input=SCRIPT, text=True, capture_output=True, check=False)


@app.get("/")
async def generate():
    done = await asyncio.to_thread(check) if os.environ.get("TO_THREAD") == "1" else check()
    return {"findings": done.stdout.strip()}

"""Certificates as text; a worker that has grown too large is replaced."""
import os
import signal
import uuid

from flask import Flask, Response

PAGE = os.sysconf("SC_PAGE_SIZE")
GROWTH = int(os.environ.get("WORKER_MAY_GROW_MB", "60")) * 1_000_000
KEEP = int(os.environ.get("KEEP_RENDERED", "1000000"))


def resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * PAGE


def load_layouts() -> dict[str, list[int]]:
    """Lay out the glyphs of all templates, as at every start."""
    return {f"layout-{n}": [(n * i * 7919) % 1021 for i in range(3000)] for n in range(1500)}


layouts = load_layouts()
at_start = resident()
rendered: dict[str, bytes] = {}
app = Flask(__name__)


@app.get("/")
def certificate():
    name = uuid.uuid4().hex
    rendered[name] = b"%PDF-" + b"x" * 2_000_000
    while len(rendered) > KEEP:
        rendered.pop(next(iter(rendered)))
    return Response(f"certificate {name}: {len(rendered[name])} bytes\n", mimetype="text/plain")


@app.teardown_request
def replace_large_worker(error):
    if resident() - at_start > GROWTH:
        os.kill(os.getpid(), signal.SIGTERM)  # Gunicorn ends it after this request and starts another

"""Prony's generator, and the floor below all of them."""

import json
import os
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from loads import SECOND_NS, closed, open_loop, spec

from peers.cells import Measure
from peers.programs import Order, Program, RunError, found_in
from peers.servers import CERTIFICATES

ROOT = Path(__file__).resolve().parent.parent.parent
PRONY = "prony"
COMMAND = ROOT / ".venv/bin/prony"
# Some containers forbid Python to keep what it compiled.
BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}
_WINDOWS = frozenset({Measure.WINDOW})


class Built(Program):
    """A program of this clone: it is there."""

    def missing(self, path: str) -> str | None:
        return None


class FloorByUring(Built):
    """The floor by io_uring, which not each kernel has."""

    def missing(self, path: str) -> str | None:
        words = [*example("floor"), "uring", "0", "0", "0"]
        asked = subprocess.run(words, check=False, capture_output=True, text=True)
        return asked.stderr.strip().removeprefix("error: ") if asked.returncode else None


def example(name: str) -> list[str]:
    """Return a built example of the engine, as a command."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(target / "release" / "examples" / name)]


def build() -> None:
    """Build the examples, and have `prony load` compiled to byte code, as it is after any earlier load."""
    words = "cargo build --release --quiet --locked --package prony-engine --example load --example floor"
    subprocess.run(words.split(), cwd=ROOT, check=True)
    # Nobody listens there, so it ends at once, with a status that says so.
    load = [str(COMMAND), "load", "http://127.0.0.1:1/", "-c", "1", "-d", "100ms"]
    subprocess.run(load, check=False, capture_output=True, env={**os.environ, **BYTE_CODE})


def engine() -> Program:
    """Return Prony's generator: its engine in windows, `prony load` where the whole process counts."""
    abilities = frozenset({"rate", "close", "upload", "tls", "http2", "h2c"})
    return Built(PRONY, command, count, abilities, environment=BYTE_CODE)


def floors() -> tuple[Program, ...]:
    """Return the loops that do nothing but send and receive."""
    none: frozenset[str] = frozenset()
    return tuple(
        kind(f"floor-{name}", partial(floor, name), floor_count, none, most_bytes=1024, measures=_WINDOWS)
        for kind, name in ((Built, "epoll"), (FloorByUring, "uring"))
    )


def floor(kind: str, order: Order) -> list[str]:
    where = f"127.0.0.1:{order.port}"
    return [*example("floor"), kind, where, str(order.cell.connections), str(order.seconds)]


def floor_count(text: str) -> int:
    return found_in(r"^(\d+)$", text.strip())


def command(order: Order) -> list[str]:
    if order.cell.measure is not Measure.WINDOW:
        return [str(COMMAND), "load", order.url, "-c", str(order.cell.connections), "-d", f"{order.seconds}s"]
    return [*example("load"), order.file("spec.json", json.dumps(asked(order)))]


def asked(order: Order) -> Mapping[str, Any]:
    """Return the cell as the engine takes it."""
    cell = order.cell
    loop = open_loop(cell.rate, cell.connections) if cell.rate else closed(cell.connections)
    times = {"window_ns": order.seconds * SECOND_NS, "warmup_ns": 0, "timeout_ns": 20 * SECOND_NS}
    # What a user gets who chooses nothing, but for a rate: there it is the least that the load costs.
    pacing = "economical" if cell.rate else "precise"
    found = spec(order.port, loop, **times, grace_ns=SECOND_NS, keep_alive=cell.keep_alive, pacing=pacing)
    # The others make a whole handshake each time.
    tls = {"ca_file": str(CERTIFICATES / "ca.pem"), "resumption": False} if cell.tls else None
    wire = {"kind": "http2", "streams": cell.streams} if cell.http2 else {"kind": "http"}
    body = b64encode(b"x" * cell.upload_bytes).decode() if cell.upload_bytes else None
    request = {**found["workload"]["request"], "method": "POST" if body else "GET", "body": body}
    load = {**found["workload"], "request": request, "expect": {"status": 200, "body": None}}
    return {**found, "target": {**found["target"], "tls": tls, "wire": wire}, "workload": load}


def count(text: str) -> int | None:
    """Return how many requests went out, all of which must have had right replies in the window."""
    try:
        recording = json.loads(text)
    except ValueError:
        # `prony load`, in words: it ends with another status where requests failed.
        return None
    account = recording["account"]
    if account["ok"] != account["scheduled"]:
        ends = {name: number for name, number in account.items() if number and name != "carried_in"}
        raise RunError(f"account: {ends}")
    return int(recording["connections"]["requests_sent"])

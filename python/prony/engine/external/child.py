"""An external generator's starter: takes the seat, then runs the tool in a folder of its own.

``main`` reads one line of JSON, ``{"seat": ..., "runs": [...]}``; each run has ``commands``, ``files``
(base64), ``reads``, ``environment``, ``duration_ns`` and ``is_window``. One that is ``interrupted_after`` its
time may not end by itself; ``counted_at``: the port of a reference server, which is asked what it counted
meanwhile. It writes events, then the output of the last run, as a recording. The tool dies with it, and it
dies with Prony.

>>> _text(b"caf\\xe9")
'caf\\ufffd'
"""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from prony.core.units import nanoseconds, seconds
from prony.engine.child import cancel_at_end_of_stdin, run_cancellable, say_event, say_line, take_seat
from prony.model.json_codec import Json
from prony.sandbox import linux

# A tool that prints an error for each request must not fill the memory.
_MOST_BYTES = 4_000_000
_PIECE_BYTES = 1 << 16
# Scripts print their counts when they are interrupted.
_INTERRUPTED_S = 3.0


def main() -> int:
    """Take the seat, run, and write the result."""
    return run_cancellable(_run_all)


def _run_all(parent: int) -> None:
    order = json.loads(sys.stdin.buffer.readline())
    # This loads the C library before the user changes.
    take_seat(order["seat"], parent)
    cancel_at_end_of_stdin()
    say_event({"event": "started"})
    told = [_run(run, order["seat"]["folder"]) for run in order["runs"]]
    say_event({"event": "recording", "recording": told[-1]})


def _run(run: Json, below: str | None) -> Json:
    with TemporaryDirectory(prefix="tool-", dir=below) as folder:
        for name, content in run["files"].items():
            (Path(folder) / name).write_bytes(b64decode(content))
        told = [_tool(command, run, folder, first=not at) for at, command in enumerate(run["commands"])]
        files = {name: _read(Path(folder) / name) for name in run["reads"]}
    first = {name: told[0][name] for name in ("open_ns", "close_ns", "cpu_ns", "counted")}
    status = next((one["status"] for one in told if one["status"]), 0)
    streams = {name: "".join(one[name] for one in told) for name in ("stdout", "stderr")}
    return {**first, "status": status, "files": files, **streams}


def _tool(command: list[str], run: Json, folder: str, first: bool) -> Json:
    before_ns = _children_ns()
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": folder}
    with (Path(folder) / ".stdout").open("wb") as stdout, (Path(folder) / ".stderr").open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if run["speaks"] else stdout,
            stderr=stderr,
            cwd=folder,
            env={**environment, **run["environment"]},
            # Safe: the one other thread only waits, and takes no lock.
            preexec_fn=linux.die_with_parent,  # noqa: PLW1509
            # With its children, to interrupt them together, as a terminal does.
            process_group=0 if run["interrupted_after"] else -1,
        )
        told = _listened(process, stdout) if run["speaks"] else _followed(process, run, first)
    said = {name: _read(Path(folder) / f".{name}") for name in ("stdout", "stderr")}
    return {**told, **said, "cpu_ns": _children_ns() - before_ns}


def _children_ns() -> int:
    """Return the CPU time of all ended children and their children, to the microsecond."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return nanoseconds(used.ru_utime + used.ru_stime)


def _followed(process: "subprocess.Popen[bytes]", run: Json, first: bool) -> Json:
    """Wait for the end; the window closes when the load's time is over, or earlier with the tool."""
    is_window = run["is_window"] and first
    before = _counts(run["counted_at"])
    opened = _mark("window_open") if is_window else time.monotonic_ns()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds(run["duration_ns"]) if run["duration_ns"] else None)
        after = _counts(run["counted_at"])
        closed = _mark("window_close") if is_window else time.monotonic_ns()
        if run["interrupted_after"]:
            _interrupt(process)
        counted = {name: count - before.get(name, 0) for name, count in after.items()} or None
        return {"status": process.wait(), "open_ns": opened, "close_ns": closed, "counted": counted}
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _interrupt(process: "subprocess.Popen[bytes]") -> None:
    """End a program and its children as Ctrl-C does; what does not end is killed."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(_INTERRUPTED_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _counts(port: int | None) -> dict[str, int]:
    """Return what the reference server at a port has counted so far; empty: there is none."""
    if port is None:
        return {}
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(_INTERRUPTED_S)
        try:
            asked.connect(f"\0prony-reference-{port}")
            told = json.loads(b"".join(iter(lambda: asked.recv(_PIECE_BYTES), b"")))
        except (OSError, ValueError):
            return {}
    return {name: count for name, count in told.items() if isinstance(count, int)}


def _listened(process: "subprocess.Popen[bytes]", kept: IO[bytes]) -> Json:
    """Forward the tool's own events, and keep the rest of its output."""
    opened = time.monotonic_ns()
    try:
        for line in process.stdout or ():
            if line.startswith(b'{"event": "window_'):
                say_line(line.rstrip())
            else:
                kept.write(line)
        ended = {"open_ns": opened, "close_ns": time.monotonic_ns(), "counted": None}
        return {"status": process.wait(), **ended}
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _mark(event: str) -> int:
    now_ns = time.monotonic_ns()
    say_event({"event": event, "monotonic_ns": now_ns})
    return now_ns


def _read(path: Path) -> str:
    """Return the beginning of a file as text; empty when it is missing or not an ordinary file."""
    try:
        with path.open("rb") as file:
            return _text(file.read(_MOST_BYTES))
    except OSError:
        return ""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")

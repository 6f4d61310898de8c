"""Stacks of one Node.js process, by V8's own profiler, from the opening of a window to its close.

SIGUSR1 opens Node's inspector on 127.0.0.1; a session there starts and stops the profiler, and closes the
inspector again. Who knows the session's name may execute code in the process: it is started with
`NODE_OPTIONS` so that only its output has that name, and no other user of the machine finds it. What it
answers is a stranger's: bounded in bytes, depth and time.

*Source*: Node.js manual, Signal events and `--inspect-publish-uid`; Chrome DevTools Protocol, Profiler;
RFC 6455, sections 4.1 and 5.2.

>>> node = {"id": 1, "hitCount": 3, "callFrame": {"functionName": "f", "url": "/a.js", "lineNumber": 6}}
>>> stacks_of({"nodes": [node]})
'f (/a.js:7) 3\\n'
"""

import json
import os
import re
import signal
import socket
import struct
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from prony.core.lines import json_object
from prony.core.units import MIB, MICROSECOND_NS, SECOND_NS
from prony.core.users import HIDES_SESSIONS
from prony.model.json_codec import Json
from prony.sandbox.watch.native_stacks import COLLECTOR, ROOT, as_one_word
from prony.sandbox.watch.stacks import RATE_HZ

# A profile of three seconds has some hundred KiB.
_MOST_BYTES, _PIECE_BYTES = 8 * MIB, 65_536
_MOST_NODES, _MOST_FRAMES, _MOST_NAME = 50_000, 200, 300
_LEAST_LARGE, _TOO_LARGE = 1 << 31, "it answered with a profile that is too large"
# A busy event loop takes some 50 ms; a profile of a large program is written for as long again.
_OPEN_S, _CLOSE_S, _LOOK_S = 2.0, 5.0, 0.02
_GOES_ON, _TEXT, _CLOSE = 0, 1, 8
_OPENED = re.compile(r"Debugger listening on ws://127\.0\.0\.1:(\d{1,5})/([0-9a-f-]{36})\s")
# By a timer: the inspector waits for its sessions to end, which this one does first.
_END = "setTimeout(() => (process._debugEnd ?? process.getBuiltinModule('inspector').close)(), 10), 0"
_HEAD_END = re.compile(rb"\r\n\r\n")
_UPGRADE = (
    *("Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)
_IDLE, _SILENT = "(idle)", "it does not answer in time"
_OWN = {"(root)": ROOT, "(garbage collector)": COLLECTOR, "(program)": "", _IDLE: ""}


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """``log``: what it has written last; ``ports``: on which it listens; ``connect``: to a port of 127.0.0.1
    in its network.
    """

    pid: int
    log: Callable[[], str]
    ports: Callable[[], Collection[int]]
    connect: Callable[[int], socket.socket]


class NodeStacks:
    """Samples one process.

    ``reason``: why there are no stacks; ``looked_s``: how long it was sampled.
    """

    def __init__(self, process: NodeProcess) -> None:
        self._process = process
        self._session: _Session | None = None
        self._port, self._text, self._began_s = 0, "", 0.0
        self.looked_s = 0.0
        self.reason = "no process of the server was sampled in the window"

    def open_window(self) -> None:
        """Open the inspector, and begin to sample."""
        try:
            self._port, name = self._opened()
            self._session = _Session(self._process.connect(self._port), name, time.monotonic() + _OPEN_S)
            self._session.call("Profiler.enable")
            self._session.call(
                "Profiler.setSamplingInterval", interval=SECOND_NS // MICROSECOND_NS // RATE_HZ
            )
            self._session.call("Profiler.start")
        except (OSError, ValueError) as error:
            self.reason = f"Node.js's inspector: {error}"
            self._end()
            return
        self._began_s = time.monotonic()

    def close_window(self) -> None:
        """Stop sampling, read what was sampled, and close the inspector; a second call does nothing."""
        if self._session is None:
            return
        self.looked_s = time.monotonic() - self._began_s
        try:
            self._session.stream.deadline_s = time.monotonic() + _CLOSE_S
            self._text = stacks_of(self._session.call("Profiler.stop").get("profile"))
        except (OSError, ValueError) as error:
            self.reason = f"Node.js's inspector: {error}"
        self._end()

    def texts(self) -> dict[int, str]:
        """Return a line for each stack, with how often it was; nothing where it could not be sampled."""
        return {self._process.pid: self._text} if self._text else {}

    def _opened(self) -> tuple[int, str]:
        """Return the port that it opened, and the session's name.

        *Errors*: OSError, ValueError where it opens none.
        """
        own = self._process
        if HIDES_SESSIONS.encode() not in Path(f"/proc/{own.pid}/environ").read_bytes():
            raise ValueError(f"`NODE_OPTIONS` has no `{HIDES_SESSIONS}`, so that other users could enter it")
        if not _takes(own.pid, signal.SIGUSR1):
            raise ValueError("the process does not take SIGUSR1 (`--disable-sigusr1`?)")
        before = set(_OPENED.findall(own.log()))
        os.kill(own.pid, signal.SIGUSR1)
        until_s = time.monotonic() + _OPEN_S
        while time.monotonic() < until_s:
            time.sleep(_LOOK_S)
            for port, name in set(_OPENED.findall(own.log())) - before:
                # What it writes is no proof: it might be somebody else's.
                if int(port) in own.ports():
                    return int(port), name
        raise ValueError("it did not open after SIGUSR1 (is its port taken, or its output not Prony's?)")

    def _end(self) -> None:
        """Close the inspector, of which nothing may stay; what hinders that is the reason."""
        session, self._session = self._session, None
        if session is None:
            return
        with suppress(OSError, ValueError):
            session.stream.deadline_s = time.monotonic() + _OPEN_S
            session.call("Runtime.evaluate", expression=_END)
        session.stream.close()
        until_s = time.monotonic() + _OPEN_S
        while self._port in self._process.ports():
            if time.monotonic() > until_s:
                why = "Node.js's inspector was asked" if self._text else self.reason
                self._text, self.reason = "", f"{why}; it did not close, and ends with the trial"
                return
            time.sleep(_LOOK_S)


def _takes(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal. *Source*: proc_pid_status(5), SigCgt."""
    lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    caught = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


# --- a session --------------------------------------------------------------------------------------------


class _Stream:
    """Bytes of a stranger, as they come, until ``deadline_s``; 8 MiB of them.

    *Errors*: OSError (TimeoutError at the deadline); ValueError at the end, or for more bytes.
    """

    def __init__(self, connection: socket.socket, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self._socket, self._rest, self._left = connection, bytearray(), _MOST_BYTES

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self._socket.settimeout(self._rest_s())
        self._socket.sendall(data)

    def exactly(self, length: int) -> bytes:
        """Return the next bytes."""
        while len(self._rest) < length:
            self._more()
        return self._cut(length)

    def until(self, end: re.Pattern[bytes]) -> bytes:
        """Return all up to what is found, with that."""
        while (found := end.search(self._rest)) is None:
            self._more()
        return self._cut(found.end())

    def _more(self) -> None:
        self._socket.settimeout(self._rest_s())
        try:
            data = self._socket.recv(_PIECE_BYTES)
        except TimeoutError as error:
            raise TimeoutError(_SILENT) from error
        self._left -= len(data)
        if not data or self._left < 0:
            raise ValueError("it ended" if not data else f"it answers with more than {_MOST_BYTES:,} bytes")
        self._rest += data

    def _cut(self, length: int) -> bytes:
        found = bytes(self._rest[:length])
        del self._rest[:length]
        self._rest_s()
        return found

    def _rest_s(self) -> float:
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(_SILENT)
        return left_s


class _Session:
    """A debugger's session; ``deadline_s``: when it gives up. *Errors*: as of `_Stream`, for all it does."""

    def __init__(self, connection: socket.socket, name: str, deadline_s: float) -> None:
        self.stream, self._number = _Stream(connection, deadline_s), 0
        try:
            self.stream.send("\r\n".join((f"GET /{name} HTTP/1.1", *_UPGRADE, "", "")).encode())
            if b" 101 " not in self.stream.until(_HEAD_END).partition(b"\r\n")[0]:
                raise ValueError("it refuses a session")
        except BaseException:
            self.stream.close()
            raise

    def call(self, method: str, **parameters: object) -> Json:
        """Return the result of a method."""
        self._number += 1
        self._send(json.dumps({"id": self._number, "method": method, "params": parameters}).encode())
        while True:
            # Events come between answers.
            answer = json_object(self._message())
            if answer.get("id") == self._number:
                result = answer.get("result")
                if not isinstance(result, dict):
                    raise ValueError(f"`{method}` failed")
                return result

    def _send(self, text: bytes) -> None:
        """Send a frame; its mask of zeros hides nothing, which only proxies would need."""
        self.stream.send(struct.pack(">BBHI", 0x80 | _TEXT, 0x80 | 126, len(text), 0) + text)

    def _message(self) -> bytes:
        found = b""
        while True:
            first, second = self.stream.exactly(2)
            length = second & 0x7F
            if length > 125:
                length = int.from_bytes(self.stream.exactly(2 if length == 126 else 8))
            data = self.stream.exactly(length)
            kind = first & 0x0F
            if kind == _CLOSE:
                raise ValueError("it ended the session")
            found += data if kind in (_GOES_ON, _TEXT) else b""
            if first & 0x80 and kind in (_GOES_ON, _TEXT):
                return found


# --- a profile --------------------------------------------------------------------------------------------


def stacks_of(profile: object) -> str:
    """Return a line for each stack of a V8 profile, from the outermost frame on, with how often it was seen.

    *Errors*: ValueError for what is no profile.
    """
    try:
        return _text_of(profile["nodes"])  # type: ignore[index]
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"it answered with no profile ({type(error).__name__})") from error


def _text_of(nodes: Sequence[Json]) -> str:
    # Small numbers in a small table: a stranger's could all have one hash.
    if len(nodes) > _MOST_NODES or any(not 0 <= node["id"] < _LEAST_LARGE for node in nodes):
        raise ValueError(_TOO_LARGE)
    frames = {node["id"]: _frame(node["callFrame"]) for node in nodes}
    callers = {one: node["id"] for node in nodes for one in node.get("children", ()) if one in frames}
    lines, size = [], 0
    for node in nodes:
        hits = tuple(_hits(node))
        if not hits or node["callFrame"]["functionName"] == _IDLE:
            continue
        stack = _stack(node["id"], callers, frames)
        for number, count in hits:
            # Where it runs, in place of where it begins.
            at = f"{stack.rpartition(':')[0]}:{number})" if number else stack
            lines.append(f"{at} {count}\n")
            size += len(lines[-1])
            if size > 2 * _MOST_BYTES:
                raise ValueError(_TOO_LARGE)
    return "".join(lines)


def _hits(node: Json) -> Iterator[tuple[int, int]]:
    """Yield how often a function was seen, with the line that ran; 0: not known."""
    ticks = [(one["line"], one["ticks"]) for one in node.get("positionTicks", ())]
    for line, count in ticks if node["callFrame"]["url"] and ticks else [(0, node.get("hitCount", 0))]:
        if not (0 <= line < _LEAST_LARGE and 0 <= count < _LEAST_LARGE):
            raise ValueError(_TOO_LARGE)
        if count:
            yield int(line), int(count)


def _stack(node: int, callers: Mapping[int, int], frames: Mapping[int, str]) -> str:
    stack = [frames[node]]
    while node in callers and len(stack) < _MOST_FRAMES:
        node = callers[node]
        stack.append(frames[node])
    return ";".join(one for one in reversed(stack) if one)


def _frame(found: Json) -> str:
    """Return whose code it is, and where that begins; empty for what Node.js itself does."""
    name, file = (as_one_word(str(found[key])[:_MOST_NAME]) for key in ("functionName", "url"))
    if not file and name in _OWN:
        return _OWN[name]
    file = unquote(file.removeprefix("file://")) if file.startswith("file://") else file
    return f"{name or '(anonymous)'} ({as_one_word(file) or 'node:'}:{int(found['lineNumber']) + 1})"

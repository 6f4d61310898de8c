"""A running Node.js and its inspector: what a stranger answers there is bounded, and nothing stays open."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from prony.core.units import MIB
from prony.core.users import HIDES_SESSIONS
from prony.sandbox.watch import inspector
from prony.sandbox.watch.inspector import NodeProcess, NodeStacks, stacks_of

TAKES = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
print("ready", flush=True)
while True:
    signal.pause()
"""
IGNORES = "print('ready', flush=True)\nimport time; time.sleep(60)"
NAME = "f42bf37a-87f1-4eb1-9478-83b5b62e916d"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"


def call_frame(name="page", url="file:///srv/shop%20a/app.js", line=11):
    return {"functionName": name, "url": url, "lineNumber": line}


def node(number, frame, hits=0, children=()):
    return {"id": number, "callFrame": frame, "hitCount": hits, "children": list(children)}


ROOT = call_frame("(root)", "", -1)
PROFILE = {
    "nodes": [
        node(1, ROOT, 1, (2, 4, 5, 6)),
        {
            **node(2, call_frame(), 5, (3,)),
            "positionTicks": [{"line": 14, "ticks": 4}, {"line": 15, "ticks": 1}],
        },
        node(3, call_frame("stringify", "", -1), 7),
        node(4, call_frame("(idle)", "", -1), 900),
        node(5, call_frame("(garbage collector)", "", -1), 3),
        node(6, call_frame("(program)", "", -1), 2),
    ]
}


def frame(text, head=0x81):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack(">BBQ", head, 127, len(data)) + data


def answers(number):
    """Return what a well-meant inspector answers to a call."""
    result = {"profile": PROFILE} if number == 4 else {}
    return frame(json.dumps({"method": "an.event"})) + frame(json.dumps({"id": number, "result": result}))


class Inspector:
    """Answers sessions with what ``talk`` sends for each call; gone after an expression was evaluated."""

    def __init__(self, talk, head=SWITCHED, name=NAME):
        self._talk, self._head, self._name = talk, head, name
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port, self.calls, self.is_open, self.looks = self._server.getsockname()[1], [], True, 0
        threading.Thread(target=self._serve, daemon=True).start()

    def log(self):
        self.looks += 1
        return (
            f"ready\nDebugger listening on ws://127.0.0.1:{self.port}/{self._name}\n"
            if self.looks > 1
            else ""
        )

    def ports(self):
        return {self.port} if self.is_open else set()

    def close(self):
        self._server.close()

    def _serve(self):
        with suppress(OSError, struct.error):
            while True:
                with self._server.accept()[0] as connection:
                    assert f"GET /{NAME} ".encode() in connection.recv(4096)
                    connection.sendall(self._head)
                    self._talks(connection)

    def _talks(self, connection):
        number = 0
        while len(begin := connection.recv(8, socket.MSG_WAITALL)) == 8:
            text = connection.recv(struct.unpack(">BBHI", begin)[2], socket.MSG_WAITALL)
            number += 1
            self.calls.append(json.loads(text))
            for piece in self._talk(number) if callable(self._talk) else [self._talk]:
                connection.sendall(piece)
            if self.calls[-1]["method"] == "Runtime.evaluate":
                self.is_open = False


@contextmanager
def process(script=TAKES, options=HIDES_SESSIONS):
    variables = {"NODE_OPTIONS": options}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=variables) as program:
        try:
            program.stdout.readline()
            yield program.pid
        finally:
            program.kill()


def sampled(server, pid):
    own = NodeProcess(
        pid, server.log, server.ports, lambda port: socket.create_connection(("127.0.0.1", port), 1)
    )
    stacks = NodeStacks(own)
    try:
        stacks.open_window()
        stacks.close_window()
    finally:
        server.close()
    return stacks


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(inspector, "_OPEN_S", 1.0)


def test_a_session_samples_and_closes_the_inspector():
    server = Inspector(lambda number: [answers(number)])
    with process() as pid:
        stacks = sampled(server, pid)
    assert stacks.texts() == {pid: stacks_of(PROFILE)}, stacks.reason
    assert stacks.looked_s > 0
    methods = ["Profiler.enable", "Profiler.setSamplingInterval", "Profiler.start", "Profiler.stop"]
    assert [one["method"] for one in server.calls] == [*methods, "Runtime.evaluate"]
    assert server.calls[1]["params"] == {"interval": 10_000}
    assert not server.is_open


def test_stacks_are_written_from_the_outermost_frame_on_without_idle_time():
    page = "(root) (:0);page (/srv/shop a/app.js:12)"
    assert stacks_of(PROFILE).splitlines() == [
        "(root) (:0) 1",
        "(root) (:0);page (/srv/shop a/app.js:14) 4",
        "(root) (:0);page (/srv/shop a/app.js:15) 1",
        f"{page};stringify (node::0) 7",
        "(root) (:0);garbage collection (runtime:0) 3",
        "(root) (:0) 2",
    ]


def endless(number):
    while True:
        yield b"\x81\x01x" * 10_000


def drips(number):
    yield struct.pack(">BBQ", 0x81, 127, 1000)
    while True:
        time.sleep(0.05)
        yield b"x"


@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        (frame("not JSON"), "Expecting value"),
        (frame("[]"), "it is no object"),
        (frame("[" * 200_000), "too many levels"),
        (frame(json.dumps({"id": 1, "result": []})), "`Profiler.enable` failed"),
        (frame(b'{"\xff'), "codec"),
        (struct.pack(">BBQ", 0x81, 127, 1 << 62), "it does not answer in time"),
        (lambda _: (frame(b"x" * MIB, 0x01) for _ in range(20)), "it answers with more than 8,388,608 bytes"),
        (b"\x88\x00", "it ended the session"),
        (endless, "Expecting value"),
        (drips, "it does not answer in time"),
        (b"\x89\x00" * 100, "it does not answer in time"),
        (b"", "it does not answer in time"),
    ],
    ids=[
        *(
            "no JSON",
            "no object",
            "deep",
            "no result",
            "no text",
            "a long frame",
            "large",
            "closed",
            "endless",
        ),
        *("slow", "pings", "silent"),
    ],
)
def test_an_inspector_that_means_harm_is_a_reason_soon(talk, reason):
    begun_s = time.monotonic()
    with process() as pid:
        stacks = sampled(Inspector(talk), pid)
    assert stacks.texts() == {}
    assert reason in stacks.reason
    assert time.monotonic() - begun_s < 10


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"head": b"HTTP/1.1 400 Bad Request\r\n\r\n"}, "it refuses a session"),
        ({"name": "a name with spaces that is no session"}, "it did not open"),
        ({"head": b"HTTP/1.1 101 " + b"x" * 100}, "it does not answer in time"),
    ],
    ids=["refused", "no session", "no end of the head"],
)
def test_an_inspector_without_a_session_is_a_reason(options, reason):
    with process() as pid:
        stacks = sampled(Inspector(lambda number: [answers(number)], **options), pid)
    assert reason in stacks.reason


def test_one_that_stays_open_is_the_reason_instead_of_its_stacks():
    server = Inspector(lambda number: [answers(number)])
    server.ports = lambda: {server.port}
    with process() as pid:
        stacks = sampled(server, pid)
    said = "Node.js's inspector was asked; it did not close, and ends with the trial"
    assert (stacks.texts(), stacks.reason) == ({}, said)


@pytest.mark.parametrize("whose", ["somebody else's", "an earlier one"])
def test_a_port_that_is_not_the_process_own_is_not_asked(whose):
    server = Inspector(lambda number: [answers(number)])
    if whose == "an earlier one":
        server.looks = 1
    else:
        server.ports = set
    with process() as pid:
        stacks = sampled(server, pid)
    assert "did not open" in stacks.reason
    assert server.calls == []


def test_a_process_that_takes_no_signal_lives_on():
    server = Inspector(lambda number: [answers(number)])
    with process(IGNORES) as pid:
        stacks = sampled(server, pid)
        os.kill(pid, 0)
    assert "does not take SIGUSR1" in stacks.reason


def test_an_inspector_that_other_users_would_find_is_not_opened():
    with process(options="") as pid:
        stacks = sampled(Inspector(lambda number: [answers(number)]), pid)
    assert "other users could enter it" in stacks.reason


def test_one_that_has_ended_is_a_reason():
    with process() as pid:
        pass
    assert "No such file" in sampled(Inspector(b""), pid).reason


@pytest.mark.parametrize(
    "profile",
    [
        None,
        {},
        {"nodes": 7},
        {"nodes": [7]},
        {"nodes": [{"id": "a"}]},
        {"nodes": [node(1, {})]},
        {"nodes": [node(1, call_frame(line=float("inf")))]},
        {"nodes": [node(1, call_frame(), "many")]},
        {"nodes": [node(1, call_frame(), -1)]},
        {"nodes": [node(1, call_frame(), 1 << 40)]},
        {"nodes": [{**node(1, call_frame(), 1), "positionTicks": [{"line": -1, "ticks": 1}]}]},
        {"nodes": [{**node(1, call_frame(), 1), "positionTicks": {"line": 1}}]},
        {"nodes": [node(1 << 61, call_frame(), 1)]},
        {"nodes": [node(1, call_frame(), 1, [[]])]},
        {"nodes": [node(number, call_frame()) for number in range(50_001)]},
    ],
)
def test_what_is_no_profile_is_named(profile):
    with pytest.raises(ValueError, match="it answered with"):
        stacks_of(profile)


def test_a_profile_that_calls_itself_has_an_end():
    text = stacks_of({"nodes": [node(1, call_frame(), 1, [2]), node(2, call_frame(), 0, [1])]})
    assert text.count(";") == 199


def test_a_profile_of_long_names_has_an_end():
    nodes = [node(n, call_frame("f" * 10_000, "u" * 10_000), 1, [n + 1]) for n in range(1000)]
    with pytest.raises(ValueError, match="too large"):
        stacks_of({"nodes": nodes})


def test_names_cannot_end_a_line_or_a_frame():
    text = stacks_of({"nodes": [node(1, call_frame("a;b (x:1) 9\nc", "x;\ny.js"), 4)]})
    assert text == "a,b (x:1) 9 c (x, y.js:12) 4\n"

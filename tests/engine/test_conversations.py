"""Whole conversations with another machine, mutated: each ends in a clear line or in its right end, opens
nothing, leaves nothing, and costs little.
"""

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.cli import run_target
from prony.cli.run_target import StudyThere
from prony.core.errors import PronyError
from prony.core.units import SECOND_NS
from prony.core.version import prony_version
from prony.engine.answers import checked_spec, read_message
from prony.engine.fleet.hosts import TargetHost
from prony.engine.pipe import Pipe, PipeEngine
from prony.model.address import Address
from prony.model.sandbox import EngineSeat
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.plan.engine_spec import to_spec
from recordings import IDLE

HERE = "192.0.2.1"
LOAD = Workload(ClosedLoop(1), DurationStop(0), timeout_ns=0, grace_ns=0)
SPEC = to_spec(LOAD, Address(HERE, 8000), EngineChoice())
FACTS = {
    **{"version": "1", "machine": "x86_64", "host": "near", "cpus": 2, "pid": 7, "is_root": False},
    "fingerprint": {"kernel": {"release": "6.1"}},
}
TARGET = [
    {"hello": prony_version(), "listen": HERE},
    {"load": 1, "spec": SPEC, "limit_ns": 7, "authority": None},
    {"cancel": 1},
    {"load": 2, "spec": SPEC, "limit_ns": 7, "authority": "PEM"},
    {"ended": 0, "said": "text", "bytes": 7},
]
GENERATOR = [
    {"load": 1, "event": {"event": "started"}},
    {"load": 1, "event": {"event": "window_open", "monotonic_ns": 7}},
    {"load": 1, "recording": IDLE, "machine": FACTS},
]

ODD = (b"1e999", b"[" * 5000, b"null", b"-1", b'"\\u202e\\u001b[2J"', b"9" * 5000, b'{"x":1},')


def mutated(messages: list[dict[str, object]], draw: random.Random) -> bytes:
    """Return a conversation in which messages are lost, come twice or in another order, or letters differ."""
    lines = [json.dumps(one).encode() + b"\n" for one in messages]
    for _ in range(draw.randint(0, 2)):
        place = draw.randrange(len(lines))
        match draw.randrange(3):
            case 0:
                lines.insert(draw.randint(0, len(lines)), lines[place])
            case 1:
                line = lines.pop(place)
                lines.insert(draw.randint(0, len(lines)), line)
            case _:
                lines[place:] = [lines[place][: draw.randint(0, len(lines[place]))]]
    letters = bytearray(b"".join(lines))
    for _ in range(draw.randint(0, 3)):
        place = draw.randrange(len(letters) + 1)
        match draw.randrange(3):
            case 0:
                letters[place : place + 1] = draw.choice(
                    [b'"', b"{", b"9", b"\n", b"\0", b"\xff", b"]", b","]
                )
            case 1:
                del letters[place : place + draw.randint(1, 40)]
            case _:
                odd = [
                    b"1e999",
                    b"[" * 5000,
                    b"null",
                    b"-1",
                    b'"\\u202e\\u001b[2J"',
                    b"9" * 5000,
                    b'{"x":1},',
                ]
                letters[place:place] = draw.choice(odd)
    return bytes(letters)


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208


class Said:
    """What another side has said: a process, or the descriptors of a pipe."""

    def __init__(self, data: bytes) -> None:
        heard, said = os.pipe()
        answers, to = os.pipe()
        self.stdout, self.stdin = os.fdopen(heard, "rb"), os.fdopen(to, "wb", buffering=0)
        self._answers = answers
        threading.Thread(target=self._write, args=(said, data), daemon=True).start()

    def _write(self, said: int, data: bytes) -> None:
        with os.fdopen(said, "wb", buffering=0) as out:
            try:
                out.write(data)
            except BrokenPipeError:
                return

    def wait(self, _timeout_s: float) -> int:
        """Return its status."""
        return 0

    def close(self) -> None:
        """Go."""
        self.stdout.close()
        self.stdin.close()
        os.close(self._answers)


class LoadOfNone:
    """In the place of a load: notes whom it would have been sent to."""

    asked: list[object] = []  # noqa: RUF012 (cleared by each test)

    def __init__(self, order: object, spec: dict[str, object], _answer: object) -> None:
        self.number = order.load
        LoadOfNone.asked.append((spec["target"]["host"], spec["target"].get("tls")))

    def start(self) -> None:
        """Do nothing."""

    cancel = start

    def is_over(self) -> bool:
        """Return that it is."""
        return True


def asker(said: Said, out: Path) -> object:
    # The text of a run that ended is shown as it is, but for its escapes: `test_run_target`.
    return run_target._There(said).run(TargetHost(address=HERE), StudyThere((), out), b"")


def generator(said: Said, _out: Path) -> object:
    pipe = Pipe(said.stdout.fileno(), said.stdin.fileno())
    return PipeEngine(EngineChoice(), pipe).run(
        LOAD, Address(HERE, 8000), EngineSeat(cpus=()), lambda _: None
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("listen", "whole"), [(asker, TARGET), (generator, GENERATOR)], ids=["target", "load"]
)
def test_each_mutated_conversation_ends_in_one_line_and_leaves_nothing(
    seed: int,
    listen: Callable[[Said, Path], object],
    whole: list[dict[str, object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_target, "_Load", LoadOfNone)
    monkeypatch.setattr(run_target, "_addresses", lambda host: {HERE} if host == HERE else set())
    LoadOfNone.asked.clear()
    draw, refused, out = random.Random(seed), 0, tmp_path / "out.prony"
    before = descriptors()
    for _ in range(500):
        said = Said(mutated(whole, draw) + b"archive" * draw.randint(0, 1))
        try:
            listen(said, out)
        except PronyError as error:
            refused += 1
            assert error.message.isprintable()
            assert len(error.message) < 400
            assert list(tmp_path.iterdir()) == []
        finally:
            said.close()
        out.unlink(missing_ok=True)
    assert 50 < refused < 500
    assert {host for host, _ in LoadOfNone.asked} <= {HERE}
    assert {json.dumps(tls) for _, tls in LoadOfNone.asked} <= {"null"}
    # Whoever wrote the last one closes its end in a thread of its own.
    until = time.monotonic() + 5
    while len(descriptors()) > len(before) and time.monotonic() < until:
        time.sleep(0.01)
    assert len(descriptors()) <= len(before)


LIAR = """\
import resource, subprocess, sys, time
from pathlib import Path
from prony.cli import run_target
from prony.cli.run_target import StudyThere
from prony.engine.fleet.hosts import TargetHost
from prony.core.errors import PronyError
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
before, begun, used = peak(), time.monotonic(), time.process_time()
run_target.started_process = lambda command, _: subprocess.Popen(
    [sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
)
try:
    said = run_target.run_on_target(TargetHost(address="192.0.2.1"), StudyThere((), Path(sys.argv[2])))
except PronyError as error:
    said = error.message
print("|", peak() - before, time.process_time() - used, time.monotonic() - begun, str(said)[:200])
"""
HELLO = f"""\
import sys
def say(text): sys.stdout.buffer.write(text)
say({json.dumps(TARGET[0]).encode()!r} + bytes([10]))
"""
REFUSED = {"load": 1, "spec": {}, "limit_ns": 1, "authority": None}
LIES = {
    "a line without an end": "while True: say(b'x' * 65536)",
    "levels without an end": "while True: say(b'[' * 65536)",
    "a long list": "say(b'{\"cancel\": [' + b'0,' * 1000000 + b'0]}' + bytes([10]))",
    "a long text": 'say(b\'{"ended": 0, "bytes": 0, "said": "\' + b\'x\' * 2000000 + b\'"}\' + bytes([10]))',
    "messages without an end": "while True: say((b'{\"cancel\": 1}' + bytes([10])) * 5000)",
    "loads without an end": f"while True: say(({json.dumps(REFUSED).encode()!r} + bytes([10])) * 500)",
}


def of(*path: str, value: object) -> dict[str, object]:
    """Return the specification of a load to a server here, with one value in another one's place."""
    found = json.loads(json.dumps(SPEC))
    found["target"] |= {"host": "127.0.0.1", "port": 0}
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return found


REQUEST = ("workload", "request")
NO_LOADS = {
    "a million threads": of("threads", value=10**6),
    "a billion connections": of("workload", "loop", value={"kind": "closed", "connections": 10**9}),
    "a rate without an end": of("workload", "loop", value={"kind": "open", "rate_per_s": 1e300}),
    "a length of ages": of("workload", "stop", value={"kind": "duration", "duration_ns": 10**30}),
    "more requests than there are": of("workload", "stop", value={"kind": "count", "requests": 2**70}),
    "a body of a file": of(*REQUEST, "body_file", value="/etc/shadow"),
    "a second request in a header": of(*REQUEST, "headers", value=[["A", "b\r\nHost: x"]]),
    "a second request in a path": of(*REQUEST, "path", value="/ HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a second request in a method": of(*REQUEST, "method", value="GET / HTTP/1.1\r\nA:"),
    "a file of keys": of("target", "tls", value={"verify": False, "keylog_file": "/tmp/keys"}),
    "a file of records": of("workload", "record", value="/tmp/records"),
    "a mix of 60,000": of("workload", "mix", value={"paths": [{"path": f"/{k}"} for k in range(60_000)]}),
    "a pace of a million letters": of("pacing", value="x" * 10**6),
}


@pytest.mark.parametrize("what", NO_LOADS)
def test_what_is_no_load_is_refused_by_the_generator_and_nothing_is_sent(what: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = {**NO_LOADS[what]}
        found["target"] = {**found["target"], "port": server.getsockname()[1]}
        answers: list[dict[str, object]] = []
        begun_s = time.monotonic()
        try:
            order = read_message({"load": 1, "spec": found, "limit_ns": 10 * SECOND_NS, "authority": None})
            checked = checked_spec(order, "127.0.0.1", ())
        except PronyError as error:
            refused = error.message
        else:
            load = run_target._Load(order, checked, answers.append)
            load._run()
            (refused,) = (str(one["error"]) for one in answers)
        assert time.monotonic() - begun_s < 10
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert "fault" not in refused
    assert len(refused) < 500
    assert refused.replace("\n", "").isprintable()


@pytest.mark.parametrize("lie", LIES)
def test_a_target_that_lies_costs_64_mib_and_two_seconds_at_most(lie: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIAR, HELLO + LIES[lie], str(tmp_path / "out.prony")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    mib, cpu_s, seconds, said = done.stdout[-400:].rpartition("|")[2].split(maxsplit=3)
    assert int(mib) <= 64
    assert float(cpu_s) <= 2, seconds
    assert float(seconds) <= 10
    assert said.strip()
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []

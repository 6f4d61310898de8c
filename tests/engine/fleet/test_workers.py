"""Generators that do not start: which, and why."""

import asyncio
import os
import signal
import socket

import pytest

from prony.core.errors import EngineError
from prony.engine.fleet.certificates import certificates_of_days
from prony.engine.fleet.cluster import _distributed, _reach, _security, _undisturbed
from prony.engine.fleet.hosts import here_command, started, wait_for


def test_who_does_not_start_in_time_is_named(monkeypatch):
    monkeypatch.setattr("prony.engine.fleet.hosts._START_S", 0.1)
    with (
        started("far-1", ["sleep", "60"]) as one,
        started("far-2", ["sleep", "60"]) as two,
        pytest.raises(EngineError, match=r"did not start within 0\.1 s: far-2$"),
    ):
        wait_for([one, two], lambda: ("far-1", "somebody else"))


def test_a_generator_that_does_not_reach_this_machine_says_so(monkeypatch):
    monkeypatch.setattr("prony.engine.fleet.cluster._REACH_S", 0.2)
    distributed = _distributed()
    security = _security(distributed, certificates_of_days(1))
    with pytest.raises(
        EngineError, match=r"^it does not reach `tls://127\.0\.0\.1:1`, where this machine listens$"
    ):
        asyncio.run(_reach(distributed, "tls://127.0.0.1:1", security))


def test_a_generator_that_is_killed_while_it_connects_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as silent, started("far-1", here_command()) as one:
        silent.settimeout(60)
        url = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        one.give({"seat": None, "parent": os.getpid()})
        one.give({"files": dict(certificates_of_days(1)), "folder": None, "url": url})
        connection, _ = silent.accept()
        one.process.kill()
        one.process.wait()
        connection.close()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def python_takes_ctrl_c():
    """As in a terminal: whoever starts the tests in the background has Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_takes_ctrl_c")
def test_ctrl_c_waits_until_what_is_made_can_be_closed():
    done = []
    with pytest.raises(KeyboardInterrupt), _undisturbed():
        signal.raise_signal(signal.SIGINT)
        done.append("made")
    assert done == ["made"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

"""A server that stands still: an open loop must see the wait of all who came meanwhile."""

import json
import os
import signal
import time

import pytest

from commands import ended

RATE_PER_S, WINDOW_S, PAUSE_S = 1000, 10, 2.0


@pytest.fixture
def server(prony):
    with ended(prony.start("reference", "--port", "0")) as process:
        process.url = process.stderr.readline().split()[-1]
        yield process


def stopped_for(pid, length_s):
    """Stop a process and return for how long it stood, as the clock says."""
    os.kill(pid, signal.SIGSTOP)
    began_s = time.monotonic()
    time.sleep(length_s)
    os.kill(pid, signal.SIGCONT)
    return time.monotonic() - began_s


def test_a_stop_of_two_seconds_is_seen_by_all_requests_that_were_due_in_it(prony, server):
    command = ("load", server.url, "--rate", RATE_PER_S, "-d", f"{WINDOW_S}s", "--json", "-")
    with ended(prony.start(*command)) as load:
        time.sleep(3)
        pause_ns = 1e9 * stopped_for(server.pid, PAUSE_S)
        out, err = load.communicate(timeout=30)
    assert (load.returncode, err) == (0, "")
    result = json.loads(out)
    assert result["account"]["scheduled"] == result["account"]["ok"] == RATE_PER_S * WINDOW_S
    response = result["latency"]["ok"]["response_ns"]
    assert response["count"] == RATE_PER_S * WINDOW_S
    # Of 10,000 requests 2,000 were due in the pause, evenly: a tenth of all waited at least half of it.
    assert response["percentiles"]["90"] >= 0.9 * pause_ns / 2
    assert response["max"] == pytest.approx(pause_ns, rel=0.02)
    assert response["percentiles"]["50"] < 0.1 * pause_ns

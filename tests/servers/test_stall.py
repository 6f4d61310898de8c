"""A server that stands still: an open loop must see the wait of all who came meanwhile."""

import json
import os
import signal
import socket
import time

import pytest

from commands import ended

pytestmark = pytest.mark.quiet

RATE_PER_S, WINDOW_S, PAUSE_S = 1000, 10, 2.0


@pytest.fixture
def server(prony):
    with ended(prony.start("reference", "--port", "0")) as process:
        process.url = process.stderr.readline().split()[-1]
        yield process


def stopped_for(server, length_s):
    """Stop a server and return how long a request of just then had to wait, as another client sees it."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as control:
        os.kill(server.pid, signal.SIGSTOP)
        began_s = time.monotonic()
        control.sendall(b"GET / HTTP/1.1\r\nHost: control\r\n\r\n")
        time.sleep(length_s)
        os.kill(server.pid, signal.SIGCONT)
        assert control.recv(1000).startswith(b"HTTP/1.1 200")
        return time.monotonic() - began_s


# With few connections the wait is nothing but the pause. With the default of 1024, the server has a thousand
# connections to accept when it goes on, which takes it tens of milliseconds on a busy machine.
@pytest.mark.parametrize(("options", "tolerance"), [(("-c", "50"), 0.02), ((), 0.02)])
def test_a_stop_of_two_seconds_is_seen_by_all_requests_that_were_due_in_it(prony, server, options, tolerance):
    command = ("load", server.url, "--rate", RATE_PER_S, "-d", f"{WINDOW_S}s", "--json", "-", *options)
    with ended(prony.start(*command)) as load:
        time.sleep(3)
        pause_ns = 1e9 * stopped_for(server, PAUSE_S)
        out, err = load.communicate(timeout=30)
    # Every ten seconds a line says that it runs.
    assert load.returncode == 0, err
    assert all(line.startswith("window ") for line in err.splitlines()), err
    result = json.loads(out)
    assert result["account"]["scheduled"] == result["account"]["ok"] == RATE_PER_S * WINDOW_S
    response = result["latency"]["ok"]["response_ns"]
    assert response["count"] == RATE_PER_S * WINDOW_S
    # Of 10,000 requests 2,000 were due in the pause, evenly: a tenth of all waited at least half of it.
    assert response["percentiles"]["90"] >= 0.9 * pause_ns / 2
    assert response["max"] == pytest.approx(pause_ns, rel=tolerance)
    assert response["percentiles"]["50"] < 0.1 * pause_ns


def test_few_connections_hide_a_stop_from_the_service_time_but_not_from_the_response_time(prony, server):
    command = ("load", server.url, "--rate", 200, "-d", "4s", "--json", "-", "-c", "4")
    with ended(prony.start(*command)) as load:
        # Past the warm-up of a second.
        time.sleep(2.5)
        stopped_for(server, 1.0)
        latency = json.loads(load.communicate(timeout=30)[0])["latency"]["ok"]
    # Four requests met the stop on their way; the 200 that were due meanwhile waited before they were sent.
    assert latency["service_ns"]["percentiles"]["90"] < 1e8
    assert latency["response_ns"]["percentiles"]["90"] > 3e8

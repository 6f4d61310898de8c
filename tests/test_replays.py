"""Six servers of 2016: what the article's raw figures say, and the faults of its client, replayed."""

import csv
import socketserver
import threading

import pytest

from benches import bench
from scripts.loading import SCRIPTS

RAW = SCRIPTS.parent / "docs" / "studies" / "wsgi-servers-raw.csv"
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%s\r\nok"
CONNECTIONS = 8


def runs(server):
    """Return the runs of a server as whole numbers."""
    with RAW.open(encoding="utf-8", newline="") as opened:
        found = [row for row in csv.DictReader(opened) if row["server"] == server]
    return [{name: int(value) for name, value in row.items() if name != "server"} for row in found]


def as_one_request_a_connection(run):
    return run["requests"] == run["connections"] - run["connect_errors"] + run["read_errors"]


def test_each_connection_to_uwsgi_had_one_reply_in_all_76_runs():
    found = [as_one_request_a_connection(run) for run in runs("uWSGI")]
    assert (len(found), all(found)) == (76, True)


@pytest.mark.parametrize(
    ("server", "dead"),
    [("Bjoern", 4), ("CherryPy", 1), ("Gunicorn", 2), ("Meinheld", 0), ("mod_WSGI-express", 2)],
)
def test_of_other_servers_only_runs_that_lost_all_connections_look_like_that(server, dead):
    found = [run for run in runs(server) if as_one_request_a_connection(run)]
    assert len(found) == dead
    assert all(run["requests"] == 0 for run in found)


@pytest.mark.parametrize("server", ["mod_WSGI-express", "Meinheld", "uWSGI"])
def test_errors_at_the_highest_load_are_replies_that_came_after_two_seconds(server):
    found = [run for run in runs(server) if run["connections"] == 10_000]
    late = sum(run["timeouts"] for run in found)
    others = sum(run["connect_errors"] + run["read_errors"] + run["write_errors"] for run in found)
    assert len(found) == 4
    assert late > 9 * others


class Replying(socketserver.StreamRequestHandler):
    """Answers ``replies`` requests of a connection and then closes it, after saying so or not; nobody beyond
    ``served`` connections is answered.
    """

    replies, head, served, count = 1, b"", 10**9, 0

    def handle(self):
        type(self).count += 1
        if self.count > self.served:
            while self.rfile.readline():
                pass
            return
        for _ in range(self.replies):
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                pass
            if not line:
                return
            self.wfile.write(REPLY % self.head)


def counted(*, mended=False, seconds=0.5, **kind):
    """Return what the client counts at a server of this kind."""

    class Listening(socketserver.ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 128

    with Listening(("127.0.0.1", 0), type("Server", (Replying,), kind)) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        load = bench("wrk_of_2015").Load(f"http://127.0.0.1:{server.server_address[1]}/", mended)
        load.run(CONNECTIONS, seconds)
        server.shutdown()
    return load, len(load.latencies_s)


def test_a_connection_that_is_closed_after_its_reply_is_dead_and_counted_nowhere():
    load, ok = counted()
    read = load.counts["read"]
    assert ok == CONNECTIONS + read
    assert load.counts["dead"] == CONNECTIONS
    assert load.counts["connect"] == 0


def test_mended_it_connects_again_and_counts_an_error_for_each():
    load, ok = counted(mended=True)
    assert ok > 3 * CONNECTIONS
    assert ok - CONNECTIONS <= load.counts["read"] <= ok
    assert load.counts["dead"] == 0


def test_a_server_that_says_that_it_closes_loses_nothing():
    load, ok = counted(head=b"Connection: close\r\n")
    assert ok > 3 * CONNECTIONS
    assert load.counts["dead"] == 0


def test_connections_that_nobody_answers_are_no_errors():
    load, ok = counted(served=3, replies=10**6)
    assert ok > 3 * CONNECTIONS
    assert load.counts["unanswered"] == CONNECTIONS - 3
    assert sum(load.counts[kind] for kind in ("connect", "read", "write", "timeout", "dead")) == 0

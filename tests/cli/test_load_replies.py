"""`prony load` and redirects, refused streams, signals, and headers that mean something."""

import json
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from commands import ended, eventually
from http2_server import END_HEADERS, HEADERS, SETTINGS, exactly, frame

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextmanager
def serving(handle):
    """A server of threads that handles each connection so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def guarded(connection):
            with connection:
                try:
                    handle(connection)
                except OSError:
                    return

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=guarded, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def reading_heads(reply):
    def handle(connection):
        while connection.recv(65536):
            connection.sendall(reply)

    return handle


def test_a_redirect_stands_in_the_report_and_in_the_json(said):
    reply = b"HTTP/1.1 302 Found\r\nX: y\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"
    with serving(reading_heads(reply)) as url:
        done = said("load", url, "-n", "20", "-c", "2")
        result = said("load", url, "-n", "20", "-c", "2", "--json", "-").json
    assert "statuses: 302 20\nmost replies are redirects to `/login`" in done.out
    assert result["account"]["ok_status"] == {"302": 20}


def test_where_a_redirect_leads_is_said_when_its_head_comes_in_pieces(said):
    def handle(connection):
        while connection.recv(65536):
            for piece in (b"HTTP/1.1 302 Found\r\nLoca", b"tion: /login\r\nContent-Length: 0\r\n", b"\r\n"):
                connection.sendall(piece)
                time.sleep(0.005)

    with serving(handle) as url:
        assert "redirects to `/login`" in said("load", url, "-n", "4", "-c", "1").out


def test_a_page_that_has_not_changed_leads_nowhere(said):
    with serving(reading_heads(b"HTTP/1.1 304 Not Modified\r\n\r\n")) as url:
        assert "redirects" not in said("load", url, "-n", "20", "-c", "2").out


def test_a_typed_close_ends_connections(said):
    seen = []

    def once(connection):
        seen.append(connection.recv(65536))
        connection.sendall(OK)

    with serving(once) as url:
        done = said(
            "load", url, "-n", "60", "-c", "4", "-m", "POST", "-H", "connection: Close", "--json", "-"
        )
    assert (done.json["account"]["ok"], len(seen)) == (60, 60)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-H", "Expect: 100-continue", "--body", "x"], "the body is sent at once"),
        (["-H", "Content-Length: 4", "--body", "x"], "expected 1, or none"),
        (["-H", "Upgrade: websocket"], "the protocol stays as it is"),
        (["-H", "Connection: keep-alive", "--no-keepalive"], "not to be kept"),
        (["-H", "Transfer-Encoding: gzip", "--body", "x"], "`chunked` once, in the end"),
        (["-H", "Transfer-Encoding: chunked", "--http1.0"], "none of that name with HTTP/1.0"),
        (["-H", "Host: a", "-H", "Host: b"], "one of that name"),
        (["-H", "Connection: close", "--http2"], "HTTP/2 does not have it"),
        (["-H", "Connection: x, Close", "--requests-per-connection", "3"], "needs some that are kept"),
        (["-H", "Content-Length: +1", "--body", "x"], "expected 1, or none"),
        (["-H", "Transfer-Encoding:", "--body", "x"], "`chunked` once, in the end"),
        (["-H", "content-type: text/plain", "--form", "a=1"], "exclude each other"),
        (["-m", "CONNECT"], "that asks for a tunnel"),
        (["-H", "TE: trailers, gzip"], "no other coding is read"),
        (["-H", "Connection: close", "--keepalive"], "contradict each other"),
        (["-H", "connection: x, CLOSE", "--keepalive", "--http1.0"], "contradict each other"),
        (["-H", "Host: shop.test", "-x", "http://127.0.0.1:3128"], "asks for the host of the URL"),
    ],
)
def test_a_header_that_contradicts_a_setting_is_refused(said, arguments, words):
    done = said("load", "http://127.0.0.1:9/", "-n", "1", "-m", "POST", *arguments)
    assert done.status == 2
    assert words in done.err


def test_a_body_is_sent_in_chunks_where_that_is_typed(said):
    seen = []

    def handle(connection):
        while not (seen and seen[-1].endswith(b"0\r\n\r\n")):
            seen.append((seen.pop() if seen else b"") + connection.recv(65536))
        connection.sendall(OK)

    with serving(handle) as url:
        arguments = [
            "-n",
            "1",
            "-c",
            "1",
            "-m",
            "POST",
            "--body",
            "hello",
            "-H",
            "Transfer-Encoding: chunked",
        ]
        assert said("load", url, *arguments).status == 0
    assert seen[0].partition(b"\r\n\r\n")[2] == b"5\r\nhello\r\n0\r\n\r\n"


def test_streams_that_are_refused_are_sent_again_when_there_is_room(said):
    refused = []

    def handle(connection):
        busy, lock = set(), threading.Lock()

        def send(data):
            with lock:
                connection.sendall(data)

        def answer(stream):
            time.sleep(0.01)
            busy.discard(stream)
            send(frame(HEADERS, END_HEADERS | 1, stream, b"\x88"))

        exactly(connection, 24)
        send(frame(SETTINGS))
        while True:
            head = exactly(connection, 9)
            exactly(connection, int.from_bytes(head[:3]))
            kind, stream = head[3], int.from_bytes(head[5:])
            if kind == HEADERS and len(busy) >= 3:
                refused.append(stream)
                send(frame(3, 0, stream, (7).to_bytes(4)))
            elif kind == HEADERS:
                busy.add(stream)
                threading.Thread(target=answer, args=(stream,), daemon=True).start()

    with serving(handle) as url:
        result = said("load", url, "--http2", "--streams", "10", "-c", "1", "-n", "60", "--json", "-").json
    assert (result["account"]["ok"], result["account"]["stream_refused"]) == (60, 0)
    assert 0 < len(refused) < 60 * 8


SIGNALS = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)


@SIGNALS
def test_a_signal_ends_a_load_with_the_result_so_far(prony, number, status):
    seen = []

    def handle(connection):
        while connection.recv(65536):
            seen.append(connection.sendall(OK))

    with serving(handle) as url:
        process = prony.start("load", url, "--rate", "100", "-d", "60s", "--json", "-")
        with ended(process):
            # The warm-up takes a second.
            assert eventually(lambda: len(seen) > 150, 60)
            process.send_signal(number)
            out, _ = process.communicate(timeout=20)
    assert process.returncode == status
    assert json.loads(out)["window"]["interrupted"]


@SIGNALS
def test_a_signal_at_the_start_has_its_own_status_too(said, monkeypatch, number, status):
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored where the tests run")
    monkeypatch.setattr("prony.cli.load._check_outputs", lambda _output: signal.raise_signal(number))
    assert said("load", "http://127.0.0.1:9/").status == status


def test_a_body_that_is_compressed_is_named_where_a_text_is_missing(said):
    reply = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"
    with serving(reading_heads(reply)) as url:
        arguments = ["-n", "2", "-c", "1", "--expect-body-contains", "cart", "--json", "-"]
        result = said("load", url, *arguments).json
    first = result["errors"][0]
    assert first["detail"] == "a body without `cart`: the body has the Content-Encoding gzip"


def test_what_is_open_at_a_time_is_no_more_than_there_are_connections(said):
    def handle(connection):
        while connection.recv(65536):
            time.sleep(0.8)
            connection.sendall(OK)

    with serving(handle) as url:
        result = said("load", url, "-c", "4", "-d", "1s", "--json", "-").json
    window_ns = result["window"]["close_ns"] - result["window"]["open_ns"]
    assert result["little"]["in_flight_integral_ns"] > 4.2 * window_ns
    assert 3.5 * window_ns < result["little"]["window_integral_ns"] <= 4 * window_ns


def with_descriptors(limit, *arguments):
    command = [sys.executable, "-m", "prony", "load", *arguments]
    limited = f"ulimit -n {limit}; exec {shlex.join(command)}"
    return subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False)


def test_connections_that_one_table_of_descriptors_cannot_hold_have_several(reference):
    done = with_descriptors(200, reference, "-n", "1000", "-c", "500", "--threads", "1", "--json", "-")
    result = json.loads(done.stdout)
    assert (result["account"]["ok"], result["account"]["client_no_descriptor"]) == (1000, 0)
    assert result["engine"]["threads"] == 4


def test_connections_that_no_descriptors_allow_are_refused_at_the_start(reference):
    done = with_descriptors(70, reference, "-n", "9000", "-c", "9000")
    assert done.returncode == 2
    assert "expected at most 1536: this process may have 70 descriptors" in done.stderr

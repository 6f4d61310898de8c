"""`prony load` and replies that come early, redirects, refused streams, and headers that mean something."""

import importlib.util
import json
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from commands import ended
from http2_server import END_HEADERS, HEADERS, SETTINGS, exactly, frame

# More than the kernel keeps for both sides.
BODY_BYTES = 12 << 20
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

NODE = """
require('http').createServer((q, r) => { r.end('ok'); q.resume() }).listen(PORT, '127.0.0.1')
"""
NODE_HTTP2 = """
const answer = s => { s.on('error', () => {}); s.respond(); s.end('ok'); s.resume() }
require('http2').createServer().on('stream', answer)
  .listen(PORT, '127.0.0.1')
"""
NGINX = """
daemon off; error_log stderr; pid FOLDER/pid; worker_processes 1; events {}
http { access_log off; client_body_temp_path FOLDER; client_max_body_size 0; keepalive_requests 100000;
  server { listen 127.0.0.1:PORT MORE; location / { return 200 'ok'; } } }
"""
UVICORN = """
async def app(scope, receive, send):
    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'content-length', b'2')]})
    await send({'type': 'http.response.body', 'body': b'ok'})
import uvicorn
uvicorn.run(app, port=PORT, log_level='error')
"""
GO = """
package main
import "net/http"
func main() {
	answer := func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ok")) }
	http.ListenAndServe("127.0.0.1:PORT", http.HandlerFunc(answer))
}
"""


def command_of(name, port, folder):
    """Return the command of a server that answers before it has read a request; none where it is missing."""
    text = {
        "node": NODE, "node-http2": NODE_HTTP2, "nginx": NGINX.replace("MORE", ""),
        "nginx-http2": NGINX.replace("MORE", "http2"), "uvicorn": UVICORN, "go": GO,
    }[name].replace("PORT", str(port)).replace("FOLDER", str(folder))  # fmt: skip
    program = "python" if name == "uvicorn" else shutil.which(name.partition("-")[0])
    if program is None or (name == "uvicorn" and importlib.util.find_spec("uvicorn") is None):
        pytest.skip(f"{name} is not installed")
    file = folder / {"go": "main.go", "nginx": "nginx.conf"}.get(name.partition("-")[0], "server")
    file.write_text(text)
    match name:
        case "node" | "node-http2":
            return [program, str(file)]
        case "nginx" | "nginx-http2":
            return [program, "-c", str(file), "-e", "stderr"]
        case "uvicorn":
            return [sys.executable, str(file)]
    subprocess.run([program, "build", "-o", str(folder / "early"), str(file)], check=True, cwd=folder)
    return [str(folder / "early")]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(port, process):
    for _ in range(500):
        assert process.poll() is None, process.stderr.read()
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError


@contextmanager
def answering_at_once(name, folder):
    port = free_port()
    process = subprocess.Popen(command_of(name, port, folder), stderr=subprocess.PIPE, text=True)
    with ended(process), process.stderr:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/"


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


@pytest.mark.parametrize(
    "name",
    ["node", "node-http2", "nginx", "nginx-http2", "uvicorn", pytest.param("go", marks=pytest.mark.slow)],
)
def test_uploads_that_are_answered_early_are_answered(said, tmp_path, name):
    body = tmp_path / "body"
    body.write_bytes(b"x" * BODY_BYTES)
    more = ["--http2", "--streams", "2"] if name.endswith("http2") else []
    with answering_at_once(name, tmp_path) as url:
        arguments = ["-n", "8", "-c", "2", "-m", "POST", "--body", f"@{body}", "--json", "-"]
        done = said("load", url, *more, *arguments)
    account = done.json["account"]
    assert (account["ok"], account["ok_status"]) == (8, {"200": 8}), done.json["errors"]
    assert account["answered_early"] > 0


def test_a_redirect_stands_in_the_report_and_in_the_json(said):
    reply = b"HTTP/1.1 302 Found\r\nX: y\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"
    with serving(reading_heads(reply)) as url:
        done = said("load", url, "-n", "20", "-c", "2")
        result = said("load", url, "-n", "20", "-c", "2", "--json", "-").json
    assert "statuses: 302 20\nmost replies are redirects to `/login`" in done.out
    assert result["account"]["ok_status"] == {"302": 20}


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


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_ends_a_load_with_the_result_so_far(prony, reference, number, status):
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored where the tests run")
    command = ["-m", "prony", "load", reference, "--rate", "100", "-d", "30s", "--json", "-"]
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with ended(process):
        time.sleep(4)
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == status
    assert json.loads(out)["window"]["interrupted"]


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

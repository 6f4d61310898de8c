"""The module that embeds WSGI in nginx: it builds, holds to PEP 3333, and outlives clients and apps."""

import http.client
import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from commands import ended, eventually
from prony.catalog.schema.loader import BUILT_IN_SERVERS
from servers.catalog_passed import changed_entries

# It is built, and tested, when its files or these tests have changed.
pytestmark = [] if "nginx-wsgi" in changed_entries() else pytest.mark.slow

SOURCE = BUILT_IN_SERVERS / "nginx-wsgi"
PYTHON = "/usr/bin/python3"
MODULE = "ngx_http_prony_wsgi_module.so"

# `app` is what `plain` is, with everything that passes between it and the server checked.
APP = '''\
import sys
import threading
import time
from wsgiref.validate import validator

TEXT = ("Content-Type", "text/plain")
ticks = 0


def tick():
    global ticks
    while True:
        ticks += 1
        time.sleep(0.001)


threading.Thread(target=tick, daemon=True).start()


class Closing:
    """Blocks that say in the error log when they are closed."""

    def __init__(self, environ, blocks):
        self.environ, self.blocks = environ, iter(blocks)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.blocks)

    def close(self):
        print("closed", self.environ["QUERY_STRING"], file=self.environ["wsgi.errors"])


def hello(environ, start):
    start("200 OK", [TEXT, ("Content-Length", "5")])
    return [b"hello"]


def unsized(environ, start):
    start("200 OK", [TEXT])
    return [b"no", b"", b" length"]


def echo(environ, start):
    body = environ["wsgi.input"]
    blocks = iter(lambda: body.read(100_000), b"")
    start("200 OK", [TEXT, ("X-Length", environ.get("CONTENT_LENGTH", "none"))])
    return blocks


def lines(environ, start):
    body = environ["wsgi.input"]
    first, rest = body.readline(), body.readlines()
    start("200 OK", [TEXT])
    return [repr((first, rest)).encode()]


def show(environ, start):
    shown = sorted((k, v) for k, v in environ.items() if isinstance(v, (str, bool, tuple)))
    start("200 OK", [TEXT])
    return ["\\n".join(f"{k}={v}" for k, v in shown).encode("latin-1")]


def stream(environ, start):
    start("200 OK", [TEXT])
    for number in range(3):
        yield b"block %d;" % number
        time.sleep(0.3)


def endless(environ, start):
    start("200 OK", [TEXT])

    def blocks():
        while True:
            yield bytes(1_000_000)

    return Closing(environ, blocks())


def written(environ, start):
    write = start("200 OK", [TEXT, ("X-Twice", "a"), ("X-Twice", "b")])
    for _ in range(40):
        write(bytes(100_000))
    return [b"end"]


def late(environ, start):
    """Changes its mind before anything was sent."""
    start("200 OK", [TEXT])
    try:
        raise KeyError("lost")
    except KeyError:
        start("503 Service Unavailable", [TEXT, ("X-Second", "yes")], sys.exc_info())
    return [b"sorry"]


def too_late(environ, start):
    start("200 OK", [TEXT, ("Content-Length", "100")])
    yield b"some"
    try:
        raise KeyError("the reply has begun")
    except KeyError:
        start("500 Error", [TEXT], sys.exc_info())
    yield b"more"


def twice(environ, start):
    start("200 OK", [TEXT])
    start("200 OK", [TEXT])
    return [b"never"]


def silent(environ, start):
    return [b"no status"]


def crash(environ, start):
    raise ValueError("boom")


def leave(environ, start):
    sys.exit(3)


def crash_in_body(environ, start):
    start("200 OK", [TEXT])

    def blocks():
        yield b"some"
        raise ValueError("boom in the body")

    return Closing(environ, blocks())


def short(environ, start):
    start("200 OK", [TEXT, ("Content-Length", "100")])
    return Closing(environ, [b"some"])


def long(environ, start):
    start("200 OK", [TEXT, ("Content-Length", "4")])
    return Closing(environ, [b"some more"])


def closed(environ, start):
    start("200 OK", [TEXT])
    return Closing(environ, [b"some"])


def empty(environ, start):
    start("200 OK", [TEXT])
    return []


def not_modified(environ, start):
    start("304 Not Modified", [("ETag", '"1"')])
    return []


def no_content(environ, start):
    start("204 No Content", [])
    return []


def bad(environ, start):
    """Gives what the query names, which start_response or the body must refuse."""
    status, headers, body = "200 OK", [TEXT], [b"x"]
    match environ["QUERY_STRING"]:
        case "newline":
            headers = [TEXT, ("X-A", "a\\r\\nX-B: b")]
        case "newline-in-status":
            status = "200 OK\\r\\nX-B: b"
        case "space-in-name":
            headers = [TEXT, ("X A", "a")]
        case "hop":
            headers = [TEXT, ("Transfer-Encoding", "chunked")]
        case "bytes-in-header":
            headers = [TEXT, ("X-A", b"a")]
        case "headers-tuple":
            headers = (TEXT,)
        case "unicode":
            headers = [TEXT, ("X-A", "\\u20ac")]
        case "status":
            status = "200"
        case "status-type":
            status = 200
        case "length":
            headers = [TEXT, ("Content-Length", "-1")]
        case "text":
            body = ["text"]
        case "none":
            body = None
    start(status, headers)
    return body


def threads(environ, start):
    start("200 OK", [TEXT])
    return [str(ticks).encode()]


def plain(environ, start):
    return globals()[environ["PATH_INFO"].split("/")[-1]](environ, start)


def named(environ, start):
    return globals()[environ["PATH_INFO"].split("/")[1]](environ, start)


app = validator(named)
'''

CONFIGURATION = """\
load_module {module};
daemon off;
master_process on;
worker_processes 2;
{user}
pid nginx.pid;
error_log error.log notice;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_max_body_size 0;
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    keepalive_requests 1000000;
    prony_wsgi_path app;
    server {{
        listen 127.0.0.1:{port};
        location / {{ prony_wsgi application:app; }}
        location /plain/ {{ prony_wsgi application:plain; }}
        location /limited/ {{ limit_rate 2m; prony_wsgi application:plain; }}
        location /missing/ {{ prony_wsgi no_such_module:app; }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Server:
    folder: Path
    port: int

    @property
    def log(self):
        return (self.folder / "error.log").read_text(encoding="utf-8", errors="replace")

    def workers(self):
        master = (self.folder / "nginx.pid").read_text().strip()
        children = Path(f"/proc/{master}/task/{master}/children").read_text()
        return [int(child) for child in children.split()]

    @contextmanager
    def connection(self):
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            yield connection

    def reply(self, path, method="GET", body=None, headers=()):
        with self.connection() as connection:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return response, response.read()

    def socket(self, text):
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        opened.sendall(text)
        return opened

    def raw(self, text):
        """Return all that comes back until the server closes."""
        with self.socket(text) as opened:
            return b"".join(iter(lambda: opened.recv(65536), b""))


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    for program, package in (
        ("nginx", "nginx"),
        ("/usr/bin/python3-config", "python3-dev"),
        ("make", "make"),
    ):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin"):
            pytest.skip(f"needs the system's package `{package}`: no `{program}`")
    if not Path("/usr/share/nginx/src/conf_flags").exists():
        pytest.skip("needs the system's package `nginx-dev`: no `/usr/share/nginx/src`")
    out = tmp_path_factory.mktemp("module")
    subprocess.run([SOURCE / "build", SOURCE, out, PYTHON], check=True, capture_output=True, text=True)
    assert [file.name for file in out.iterdir()] == [MODULE]
    return out / MODULE


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@pytest.fixture(scope="module")
def server(module, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nginx")
    (folder / "app").mkdir()
    (folder / "temp").mkdir()
    (folder / "app" / "application.py").write_text(APP)
    # Started by root, nginx would give its workers a user that cannot read the test's folder.
    user = "user root;" if os.geteuid() == 0 else ""
    found = Server(folder, free_port())
    text = CONFIGURATION.format(module=module, user=user, port=found.port)
    (folder / "nginx.conf").write_text(text)
    command = ["/usr/sbin/nginx", "-p", str(folder), "-e", "stderr", "-c", "nginx.conf"]
    with ended(subprocess.Popen(command, stderr=subprocess.PIPE, text=True)) as process:
        assert eventually(lambda: process.poll() is not None or answers(found.port))
        assert process.poll() is None, process.stderr.read()
        # The first worker may answer before the second is there.
        assert eventually(lambda: len(found.workers()) == 2)
        yield found


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def get(path, *headers, version="1.1"):
    lines = (f"GET {path} HTTP/{version}", "Host: a", *headers, "", "")
    return "\r\n".join(lines).encode()


@pytest.fixture(autouse=True)
def no_worker_died(server):
    before = server.workers()
    yield
    assert server.workers() == before
    assert "exited on signal" not in server.log


def test_a_body_of_known_length_is_sent_with_its_length(server):
    response, body = server.reply("/hello")
    assert (response.status, response.reason, body) == (200, "OK", b"hello")
    assert response.headers["Content-Length"] == "5"
    assert response.headers["Content-Type"] == "text/plain"
    assert response.headers["Transfer-Encoding"] is None


@pytest.mark.parametrize("where", ["/unsized", "/plain/unsized"])
def test_a_body_of_unknown_length_is_sent_in_chunks(server, where):
    response, body = server.reply(where)
    assert response.headers["Transfer-Encoding"] == "chunked"
    assert response.headers["Content-Length"] is None
    assert body == b"no length"


def test_an_http_1_0_client_gets_a_body_of_unknown_length_until_the_connection_closes(server):
    head, _, body = server.raw(get("/unsized", version="1.0")).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert body == b"no length"


@pytest.mark.parametrize("size", [0, 1, 5_000, 5_000_000])
def test_a_request_body_is_echoed(server, size):
    sent = os.urandom(size)
    response, body = server.reply("/echo", "POST", sent)
    assert body == sent
    assert response.headers["X-Length"] == str(size)


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_request_body_in_chunks_is_echoed_and_its_length_known(server, size):
    part = os.urandom(size)
    with server.connection() as connection:
        connection.request("POST", "/echo", iter([part, part]), encode_chunked=True)
        response = connection.getresponse()
        assert response.headers["X-Length"] == str(2 * size)
        assert response.read() == part + part


@pytest.mark.parametrize("padding", [0, 100_000])
def test_a_request_body_is_read_by_lines_from_memory_and_from_a_file(server, padding):
    _, body = server.reply("/lines", "POST", b"a\nb" + bytes(padding) + b"\nc")
    assert eval(body) == (b"a\n", [b"b" + bytes(padding) + b"\n", b"c"])


def test_the_environ_says_what_was_asked(server):
    path = "/show/a%20b/%C3%A9?x=%20y"
    _, body = server.reply(path, "POST", b"12345", {"Content-Type": "a/b", "X-One-Two": "3"})
    lines = dict(line.split("=", 1) for line in body.decode("latin-1").split("\n"))
    expected = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/show/a b/\u00c3\u00a9",
        "QUERY_STRING": "x=%20y",
        "REQUEST_URI": path,
        "CONTENT_TYPE": "a/b",
        "CONTENT_LENGTH": "5",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(server.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_X_ONE_TWO": "3",
        "HTTP_HOST": f"127.0.0.1:{server.port}",
        "wsgi.version": "(1, 0)",
        "wsgi.url_scheme": "http",
        "wsgi.multithread": "False",
        "wsgi.multiprocess": "True",
        "wsgi.run_once": "False",
    }
    assert {name: lines[name] for name in expected} == expected
    assert 0 < int(lines["REMOTE_PORT"]) < 65536
    assert "HTTP_CONTENT_TYPE" not in lines
    assert "HTTP_CONTENT_LENGTH" not in lines


def test_repeated_headers_of_a_request_are_joined(server):
    text = get("/show", "X-A: 1", "x-a: 2", "Cookie: a=1", "Cookie: b=2", "Connection: close")
    reply = server.raw(text)
    assert b"HTTP_X_A=1, 2\n" in reply
    assert b"HTTP_COOKIE=a=1; b=2\n" in reply


def test_each_block_arrives_before_the_next_is_made(server):
    with server.socket(get("/stream", "Connection: close")) as opened:
        came = []
        while block := opened.recv(65536):
            came.append((time.monotonic(), block))
    first = next(at for at, block in came if b"block 0" in block)
    second = next(at for at, block in came if b"block 1" in block)
    last = next(at for at, block in came if b"block 2" in block)
    assert second - first > 0.2
    assert last - second > 0.2
    assert came[-1][1].endswith(b"0\r\n\r\n")


def test_a_slow_client_does_not_hold_up_its_worker(server):
    slow = [server.socket(get(f"/endless?slow-{number}")) for number in range(8)]
    try:
        assert all(opened.recv(10) for opened in slow)
        for _ in range(20):
            assert server.reply("/hello")[1] == b"hello"
    finally:
        for opened in slow:
            opened.close()
    for number in range(8):
        assert eventually(lambda number=number: f"closed slow-{number}" in server.log)


def test_what_is_written_comes_before_what_is_returned(server):
    response, body = server.reply("/written")
    assert body == bytes(4_000_000) + b"end"
    assert response.headers.get_all("X-Twice") == ["a", "b"]


@pytest.mark.parametrize(("path", "size"), [("/limited/written", 4_000_003), ("/limited/stream", 24)])
def test_a_reply_goes_on_under_a_limit_of_its_rate(server, path, size):
    assert len(server.reply(path)[1]) == size


def test_exc_info_replaces_a_reply_that_was_not_sent_yet(server):
    response, body = server.reply("/late")
    assert (response.status, body) == (503, b"sorry")
    assert response.headers["X-Second"] == "yes"


def test_exc_info_is_raised_when_the_reply_has_begun(server):
    with pytest.raises(http.client.IncompleteRead) as caught:
        server.reply("/plain/too_late")
    assert caught.value.partial == b"some"
    assert eventually(lambda: "KeyError: 'the reply has begun'" in server.log)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/crash", "ValueError: boom"),
        ("/leave", "SystemExit: 3"),
        ("/plain/twice", "called again, without exc_info"),
        ("/plain/silent", "before start_response"),
        ("/missing/", "`no_such_module:app` was not imported"),
    ],
)
def test_an_application_that_fails_is_answered_500_and_the_log_says_why(server, path, told):
    response, _ = server.reply(path)
    assert response.status == 500
    assert eventually(lambda: told in server.log)


def test_a_traceback_in_the_log_is_whole(server):
    server.reply("/plain/crash")
    assert eventually(
        lambda: re.search(r"(?s)Traceback.*in plain.*in crash.*ValueError: boom, client", server.log)
    )


def test_a_module_that_cannot_be_imported_is_told_with_its_traceback(server):
    assert "ModuleNotFoundError: No module named 'no_such_module'" in server.log


@pytest.mark.parametrize(
    ("path", "told"), [("/crash_in_body", "boom in the body"), ("/short", "4 bytes of a Content-")]
)
def test_a_reply_that_breaks_off_is_seen_to_be_short(server, path, told):
    with pytest.raises(http.client.IncompleteRead):
        server.reply(f"{path}?broken{path}")
    assert eventually(lambda: told in server.log and f"closed broken{path}" in server.log)


def test_what_exceeds_the_content_length_is_not_sent(server):
    response, body = server.reply("/long?long")
    assert (response.headers["Content-Length"], body) == ("4", b"some")
    assert eventually(lambda: "more than its Content-Length" in server.log and "closed long" in server.log)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_iterable_is_closed(server, method):
    server.reply(f"/closed?whole-{method}", method)
    assert eventually(lambda: f"closed whole-{method}" in server.log)


@pytest.mark.parametrize("path", ["/hello", "/plain/hello", "/unsized", "/plain/unsized", "/empty"])
def test_a_head_request_has_no_body_and_keeps_the_connection(server, path):
    with server.socket(get(path).replace(b"GET", b"HEAD") + get("/hello", "Connection: close")) as opened:
        reply = b"".join(iter(lambda: opened.recv(65536), b""))
    first, second, *rest = reply.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert first.endswith(b"\r\n\r\n")
    assert second.endswith(b"\r\n\r\nhello")
    assert (b"Content-Length: 5" in first) == path.endswith("hello")
    assert rest == []


@pytest.mark.parametrize(("path", "status"), [("/not_modified", 304), ("/no_content", 204), ("/empty", 200)])
def test_a_reply_without_a_body_keeps_the_connection(server, path, status):
    with server.connection() as connection:
        for _ in range(3):
            connection.request("GET", path)
            response = connection.getresponse()
            assert (response.status, response.read()) == (status, b"")
            assert response.headers["Content-Length"] == ("0" if status == 200 else None)
            assert connection.sock is not None


@pytest.mark.parametrize(
    "what",
    [
        *(
            "newline",
            "newline-in-status",
            "space-in-name",
            "hop",
            "bytes-in-header",
            "headers-tuple",
            "unicode",
        ),
        *("status", "status-type", "length", "text", "none"),
    ],
)
def test_what_an_application_must_not_give_is_refused(server, what):
    response, _ = server.reply(f"/plain/bad?{what}")
    assert response.status == 500
    assert response.headers["X-B"] is None


def test_a_connection_serves_thousands_of_requests(server):
    with server.connection() as connection:
        connection.connect()
        opened = connection.sock
        for number in range(2000):
            connection.request("GET", "/hello" if number % 2 else "/plain/unsized")
            assert connection.getresponse().read() == (b"hello" if number % 2 else b"no length")
        assert connection.sock is opened


def test_requests_sent_at_once_are_answered_in_order(server):
    texts = [get("/hello"), get("/unsized"), get("/hello", "Connection: close")]
    reply = server.raw(b"".join(texts))
    assert [part[-5:] for part in reply.split(b"HTTP/1.1 200")[1:]] == [b"hello", b"0\r\n\r\n", b"hello"]


def test_a_client_that_breaks_off_its_request_is_forgotten(server):
    for _ in range(20):
        opened = server.socket(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + bytes(70_000)
        )
        opened.close()
    assert server.reply("/hello")[1] == b"hello"


@pytest.mark.parametrize("path", ["/endless", "/plain/endless"])
def test_the_iterable_is_closed_when_the_client_breaks_off(server, path):
    with server.socket(get(f"{path}?broken-off{path}")) as opened:
        assert opened.recv(100_000)
    assert eventually(lambda: f"closed broken-off{path}" in server.log)
    assert server.reply("/hello")[1] == b"hello"


def test_threads_of_the_application_run_while_no_request_does(server):
    with server.connection() as connection:

        def ticks():
            connection.request("GET", "/threads")
            return int(connection.getresponse().read())

        before = ticks()
        time.sleep(0.5)
        assert ticks() - before > 50


def test_many_requests_leave_no_memory_behind(server):
    def resident_kb():
        texts = [Path(f"/proc/{worker}/status").read_text() for worker in server.workers()]
        return sum(int(re.search(r"VmRSS:\s+(\d+)", text)[1]) for text in texts)

    def load():
        for path in ("/plain/hello", "/unsized", "/late", "/plain/crash", "/plain/bad?newline"):
            for _ in range(300):
                server.reply(path)
        for _ in range(50):
            server.reply("/echo", "POST", bytes(100_000))

    load()
    before = resident_kb()
    load()
    # One 100 kB body left behind each time would be 5,000 kB, one environ 3 kB or 4,000 kB in all.
    assert resident_kb() - before < 1000

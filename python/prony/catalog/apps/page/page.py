"""One page for each kind of work, over WSGI and without a framework: bodies, a stream, an echo, a wait, a loop."""

import time

PATTERN = b"0123456789abcdef"
CHUNK = PATTERN * 64
CHUNKS = 16
SLEEP_S = 0.05
CPU_NS = 2_000_000


def app(environ, start_response):
    page = PAGES.get((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
    if page is None:
        return reply(start_response, "404 Not Found", b"not found\n")
    return page(environ, start_response)


def reply(start_response, status, body):
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def text(body):
    return lambda environ, start_response: reply(start_response, "200 OK", body)


def stream(environ, start_response):
    # Without Content-Length: the server chunks it, or ends it with the connection.
    start_response("200 OK", [("Content-Type", "text/plain")])
    return (CHUNK for _ in range(CHUNKS))


def echo(environ, start_response):
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return reply(start_response, "200 OK", environ["wsgi.input"].read(length))


def sleep(environ, start_response):
    time.sleep(SLEEP_S)
    return reply(start_response, "200 OK", b"slept\n")


def cpu(environ, start_response):
    # The thread's own time: waiting for the interpreter's lock, or for a CPU, does not count as work.
    end = time.thread_time_ns() + asked_ns(environ.get("QUERY_STRING", ""))
    while time.thread_time_ns() < end:
        pass
    return reply(start_response, "200 OK", b"done\n")


def asked_ns(query):
    return int(query[3:]) * 1000 if query.startswith("us=") and query[3:].isdigit() else CPU_NS


PAGES = {
    ("GET", "/1k"): text(CHUNK),
    ("GET", "/64k"): text(PATTERN * 4096),
    ("GET", "/stream"): stream,
    ("POST", "/echo"): echo,
    ("GET", "/sleep"): sleep,
    ("GET", "/cpu"): cpu,
}

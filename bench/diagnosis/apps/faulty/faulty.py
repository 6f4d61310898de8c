"""One fault at each path, over WSGI."""

import threading
import time

from faults import DONE, EVERYWHERE, be_late, compute, is_wrong, limit, number, sized

_lock = threading.Lock()


def app(environ, start_response):
    path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
    if path == "/wrong" and is_wrong(number(query, 10)):
        return reply(start_response, "500 Internal Server Error", b"wrong\n")
    if path == "/sized":
        return reply(start_response, "200 OK", sized(number(query, 0)))
    if path in PAGES:
        page, default = PAGES[path]
        page(number(query, default))
        return reply(start_response, "200 OK", DONE)
    return reply(start_response, "404 Not Found", b"not found\n")


def reply(start_response, status, body):
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def sleep(ms):
    time.sleep(ms / 1000)


def lock(ms):
    """Hold the one lock of this process while it sleeps: nobody else gets on."""
    with _lock:
        time.sleep(ms / 1000)


PAGES = {**EVERYWHERE, "/sleep": (sleep, 20), "/lock": (lock, 20), "/wrong": (lambda _: None, 10)}

limit()
be_late()
compute()

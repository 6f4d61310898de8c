"""The app `page`: each page does what its name says, and the same over WSGI as over ASGI."""

import asyncio
import io
import sys
import time
from importlib import import_module

import pytest

from prony.catalog.schema.apps import BUILT_IN_APPS
from prony.catalog.schema.loader import load_catalog
from prony.figures.planted import work_path

VARIANTS = ["page-1k", "page-64k", "page-stream", "page-echo", "page-sleep", "page-cpu"]


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture(scope="module")
def apps():
    sys.path.insert(0, str(BUILT_IN_APPS / "page"))
    try:
        yield {
            "wsgi": over_wsgi(import_module("page").app),
            "asgi": over_asgi(import_module("page_asgi").app),
        }
    finally:
        sys.path.pop(0)
        for module in ("page", "page_asgi"):
            sys.modules.pop(module, None)


def over_wsgi(app):
    def call(method, path, body=b""):
        told = {}

        def start_response(status, headers):
            told.update(status=int(status.split()[0]), headers={key.lower(): value for key, value in headers})

        path, _, query = path.partition("?")
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query}
        environ["wsgi.input"] = io.BytesIO(body)
        pieces = list(app({**environ, "CONTENT_LENGTH": str(len(body))}, start_response))
        return told["status"], told["headers"], pieces

    return call


def over_asgi(app):
    def call(method, path, body=b""):
        waiting = [
            {"type": "http.request", "body": body[:100], "more_body": True},
            {"type": "http.request", "body": body[100:]},
        ]
        sent = []

        async def receive():
            return waiting.pop(0)

        async def send(message):
            sent.append(message)

        path, _, query = path.partition("?")
        scope = {"type": "http", "method": method, "path": path, "query_string": query.encode()}
        asyncio.run(app(scope, receive, send))
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        assert [message.get("more_body", False) for message in sent[1:]][-1] is False
        return sent[0]["status"], headers, [message["body"] for message in sent[1:] if message["body"]]

    return call


@pytest.mark.parametrize("interface", ["wsgi", "asgi"])
class TestEachInterface:
    @pytest.mark.parametrize("name", VARIANTS)
    def test_each_page_keeps_its_contract(self, apps, catalog, interface, name):
        (check,) = catalog.app(name).contract.checks
        request = check.request
        status, headers, pieces = apps[interface](request.method, request.path, request.body or b"")
        assert status == check.status == 200
        assert headers["content-type"] == "text/plain"
        assert b"".join(pieces) == check.body

    def test_only_the_stream_does_not_tell_its_length(self, apps, interface):
        for path, length in (("/1k", "1024"), ("/64k", "65536"), ("/stream", None), ("/sleep", "6")):
            assert apps[interface]("GET", path)[1].get("content-length") == length

    def test_the_stream_comes_in_16_pieces(self, apps, interface):
        assert [len(piece) for piece in apps[interface]("GET", "/stream")[2]] == [1024] * 16

    def test_sleeping_takes_50_ms_and_no_cpu(self, apps, interface):
        begun, worked = time.monotonic_ns(), time.thread_time_ns()
        apps[interface]("GET", "/sleep")
        assert time.monotonic_ns() - begun >= 50_000_000
        assert time.thread_time_ns() - worked < 25_000_000

    def test_working_takes_2_ms_of_the_threads_own_time(self, apps, interface):
        worked = time.thread_time_ns()
        apps[interface]("GET", "/cpu")
        assert time.thread_time_ns() - worked >= 2_000_000

    def test_it_works_as_long_as_it_is_asked_to(self, apps, interface):
        taken = []
        for _ in range(20):
            worked = time.thread_time_ns()
            apps[interface]("GET", work_path(500))
            taken.append(time.thread_time_ns() - worked)
        assert 500_000 <= min(taken) < 2_000_000

    @pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/echo"), ("POST", "/1k")])
    def test_anything_else_is_not_found(self, apps, interface, method, path):
        assert apps[interface](method, path)[0] == 404

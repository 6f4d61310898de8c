"""One exchange over HTTP/2, as readiness and contracts need it."""

import time

import pytest

from http2_server import CERTIFICATES, reset, serving
from prony.core.errors import EngineError
from prony.model.address import Address, Tls, Wire
from prony.model.exchange import Request
from prony.sandbox.exchange import BrokenReplyError, exchange, request_bytes

GET = Request()


def asked(server, request=GET, tls=None):
    address = Address("127.0.0.1", server.port, tls=tls, wire=Wire.HTTP2)
    return exchange(address, request, time.monotonic() + 10)


def test_a_request_has_its_reply_by_prior_knowledge():
    with serving() as server:
        reply = asked(server, Request("POST", "/", body=b"12345"))
    assert (reply.status, reply.body, server.requests) == (200, b"hi", 1)


def test_a_body_is_longer_than_what_the_server_takes_at_once():
    with serving() as server:
        reply = asked(server, Request("POST", "/", body=b"x" * 300_000))
    assert (reply.status, server.body_bytes) == (200, 300_000)


def test_over_tls_both_sides_agree_on_it():
    with serving(protocols=["h2"]) as server:
        reply = asked(server, tls=Tls(ca_file=str(CERTIFICATES / "ca.pem")))
    assert (reply.status, reply.body) == (200, b"hi")


def test_a_stream_that_the_server_resets_is_no_reply():
    with (
        serving(lambda _number, stream: reset(stream)) as server,
        pytest.raises(BrokenReplyError, match="reset the stream"),
    ):
        asked(server)


def test_the_bytes_of_a_request_alone_are_refused():
    with pytest.raises(EngineError, match="expected one whose request is sent at once"):
        request_bytes(GET, Address("127.0.0.1", 1, wire=Wire.HTTP2))

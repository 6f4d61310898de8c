"""One request and one reply as bytes, across the border to the compiled engine."""

import json
from typing import Any

import pytest

from prony import _engine
from prony.model.address import Address, Wire
from prony.model.exchange import Request
from prony.plan.engine_spec import encode_request, encode_target


def encode(address: Address, request: Request) -> bytes:
    return _engine.encode_request(json.dumps(encode_target(address)), json.dumps(encode_request(request)))


def test_the_engine_speaks_every_wire() -> None:
    assert set(_engine.WIRES) == set(Wire)


def test_a_request_is_that_of_a_load() -> None:
    bytes_ = encode(Address("127.0.0.1", 8000), Request(path="/x", headers=(("Accept", "a"),)))
    assert bytes_.startswith(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n")
    assert encode(Address("127.0.0.1", 8000, wire=Wire.UWSGI), Request())[4:].startswith(
        b"\x0e\0REQUEST_METHOD\x03\0GET"
    )


def test_a_reply_is_null_until_it_is_complete() -> None:
    data = b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nhi"
    assert _engine.decode_reply("http", "GET", data[:-1], False) is None
    assert _engine.decode_reply("http", "GET", data, False) == (404, b"hi")
    assert _engine.decode_reply("scgi", "GET", b"A: b\n\nhi", False) is None
    assert _engine.decode_reply("scgi", "GET", b"A: b\n\nhi", True) == (200, b"hi")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: _engine.decode_reply("http", "GET", b"SSH-2.0", False), "reply", "begin with HTTP/1."),
        (lambda: _engine.decode_reply("http", "GET", b"", True), "reply", "closed before the reply"),
        (lambda: _engine.decode_reply("gopher", "GET", b"", False), "invalid_spec", "no wire `gopher`"),
        (lambda: _engine.encode_request("{}", "{}"), "invalid_spec", "the target: missing field `host`"),
        (
            lambda: encode(Address("h", 1), Request(path="x")),
            "invalid_spec",
            "`workload.request.path` is `x`",
        ),
        (lambda: encode(Address("h", 0), Request()), "invalid_spec", "`target.port` is `0`"),
    ],
)
def test_what_does_not_hold_is_refused(call: Any, kind: str, message: str) -> None:
    with pytest.raises(_engine.EngineError, match=message) as caught:
        call()
    assert caught.value.kind == kind

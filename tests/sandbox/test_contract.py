import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import pytest

from prony.model.address import Address
from prony.model.exchange import Check, Contract, Request
from prony.sandbox.contract import difference, verify
from prony.sandbox.exchange import Reply


@contextmanager
def answering(reply: bytes) -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join()


CHECK = Check(Request(path="/hello"), body=b"Hello, World!")


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!",
        b"HTTP/1.0 200 OK\r\n\r\nHello, World!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nHello,\r\n7\r\n World!\r\n0\r\n\r\n",
    ],
    ids=["length", "until the end", "chunked"],
)
def test_a_right_answer_holds_however_it_is_framed(reply: bytes) -> None:
    with answering(reply) as address:
        assert verify(Contract((CHECK,)), address) is None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHullo",
            "GET /hello: expected the body `Hello, World!` (13 bytes), got `Hullo` (5 bytes)",
        ),
        (
            b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nOops",
            "GET /hello: expected a status of 200 to 399, got 500 with the body `Oops`",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nHello",
            "GET /hello: no complete reply: IncompleteRead(5 bytes read, 45 more expected)",
        ),
        (b"SSH-2.0\r\n\r\n", "GET /hello: no complete reply: SSH-2.0\r\n"),
    ],
)
def test_a_wrong_answer_is_named_with_both_sides(reply: bytes, reason: str) -> None:
    with answering(reply) as address:
        assert verify(Contract((CHECK,)), address) == reason


def test_a_late_difference_is_shown_where_it_is() -> None:
    reason = difference(Check(body=b"a" * 1000 + b"b"), Reply(200, b"a" * 1000 + b"c"))
    assert reason is not None
    assert f"`{'a' * 30}b` (1001 bytes, from byte 970)" in reason


def test_an_answer_that_never_comes_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address("127.0.0.1", server.getsockname()[1])
        reason = verify(Contract((CHECK,)), address, timeout_s=0.2)
    assert reason == "GET /hello: no complete reply within 0.2 s"


def test_a_contract_without_checks_holds() -> None:
    assert verify(Contract(), Address("127.0.0.1", 1)) is None


PAGE = Reply(201, b"Your cart", {"content-type": "text/html; charset=utf-8"})


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (Check(statuses=((200, 201), (300, 399))), None),
        (Check(statuses=((200, 200), (300, 399))), "expected a status of 200 or 300 to 399, got 201"),
        (Check(status=200), "expected the status 200, got 201"),
        (Check(headers=(("Content-Type", "text/html"), ("content-type", None))), None),
        (
            Check(headers=(("Content-Type", "text"),)),
            "expected the header `Content-Type: text`, got `text/html",
        ),
        (Check(headers=(("Server", None),)), "expected the header `Server`, got none"),
        (Check(body_contains=(b"Your", b"cart")), None),
        (Check(body_contains=(b"Your", b"list")), "expected a body with `list`, got `Your cart` (9 bytes)"),
        (Check(body_sha256=sha256(b"Your cart").hexdigest()), None),
        (Check(body_sha256="0" * 64), "expected a body with the SHA-256 0000"),
    ],
)
def test_all_that_is_expected_of_a_reply_is_compared(check: Check, reason: str | None) -> None:
    found = difference(check, PAGE)
    assert found is None if reason is None else reason in (found or "")

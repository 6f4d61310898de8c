import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from prony.model.address import Address, AddressKind
from prony.model.exchange import Check, Contract, Request
from prony.sandbox.contract import difference, host_of, listeners_of, verify
from prony.sandbox.exchange import Reply, connect


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
            "GET /hello: no complete reply: the reply ends within its body",
        ),
        (
            b"SSH-2.0\r\n\r\n",
            "GET /hello: no complete reply: the reply does not begin with HTTP/1.",
        ),
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


@contextmanager
def without_an_end(beginning: bytes, again: bytes) -> Iterator[Address]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(beginning)
                while again:
                    connection.sendall(again)
                connection.recv(65536)
                connection.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("beginning", "again"),
    [
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"Trailer: x\r\n" * 5000),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n", b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n", b""),
        (OK + b"Content-Length: 1000000000000000\r\n\r\n", b""),
        (OK, b"Header: x\r\n" * 5000),
        (OK + b"Header: ", b"x" * 65536),
        (OK + b"\r\n", b"x" * 65536),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 3000),
        (b"", b"x"),
        (OK, b""),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 65536),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"a" * 65536),
        (OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", b"a" * 65536),
        (OK + b"Content-Length: -5\r\n\r\nabc", b""),
        (b"HTTP/1.0 200 OK\r\n\r\n", b"a" * 65536),
        (b"", b"\r\n" * 30_000),
        (b"", b" " * 65536),
        (b"", bytes(65536)),
    ],
    ids=[
        *(
            "chunks of a byte",
            "trailers",
            "broken chunks",
            "a huge chunk",
            "a negative chunk",
            "a huge length",
        ),
        *("headers", "a header", "a body", "continue", "no reply", "nothing"),
        *("an extension", "a chunk of 2**64", "a length of 5,000 digits", "a negative length"),
        *("a body of HTTP/1.0", "blank lines", "spaces", "zeroes"),
    ],
)
def test_a_reply_without_an_end_has_one_at_the_deadline(beginning: bytes, again: bytes) -> None:
    started_s = time.monotonic()
    with without_an_end(beginning, again) as address:
        failure = verify(Contract((CHECK,)), address, timeout_s=1.0)
    assert failure is not None
    assert failure.startswith("GET /hello: no complete reply")
    assert time.monotonic() - started_s < 4


def test_a_reply_of_a_byte_at_a_time_has_its_end_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                for byte in OK + b"Content-Length: 500\r\n\r\n" + b"a" * 500:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.05)

        thread = threading.Thread(target=answer)
        thread.start()
        started_s = time.monotonic()
        failure = verify(Contract((CHECK,)), Address("127.0.0.1", server.getsockname()[1]), timeout_s=1.0)
        assert time.monotonic() - started_s < 3
        thread.join()
    assert failure == "GET /hello: no complete reply within 1 s"


def test_a_server_that_takes_no_request_is_left_at_the_deadline() -> None:
    check = Check(Request(method="POST", path="/hello", body=b"x" * (8 << 20)))
    started_s = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        failure = verify(Contract((check,)), Address("127.0.0.1", server.getsockname()[1]), timeout_s=1.0)
    assert failure == "POST /hello: no complete reply within 1 s"
    assert time.monotonic() - started_s < 3


def test_a_link_in_the_place_of_a_socket_is_not_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(real))
        listener.listen()
        connect(Address(str(real), 0, AddressKind.UNIX), 1).close()
        with pytest.raises(ConnectionRefusedError):
            connect(Address(str(link), 0, AddressKind.UNIX), 1)


LISTENS = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"


def test_where_a_process_listens_is_its_own_and_no_other_ones_port() -> None:
    command = [sys.executable, "-c", f"{LISTENS}; input()"]
    with (
        socket.create_server(("127.0.0.1", 0)) as own,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other,
    ):
        assert other.stdout is not None
        ports = own.getsockname()[1], int(other.stdout.readline())
        found = [{one.port for one in listeners_of([pid])} for pid in (os.getpid(), other.pid)]
        assert [[port in each for port in ports] for each in found] == [[True, False], [False, True]]
        assert ports[0] in {one.port for one in listeners_of([os.getpid()]) if one.host == "127.0.0.1"}
        other.communicate("")


@pytest.mark.skipif(sys.byteorder != "little", reason="the examples are of a little-endian machine")
@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("0100007F", "127.0.0.1"),
        ("00000000", "0.0.0.0"),
        ("00000000000000000000000001000000", "::1"),
        ("0000000000000000FFFF00000100007F", "::ffff:127.0.0.1"),
        ("B80D0120000000000000000001000000", "2001:db8::1"),
    ],
)
def test_an_address_of_the_kernels_table_is_read_in_its_byte_order(written: str, host: str) -> None:
    assert host_of(written) == host

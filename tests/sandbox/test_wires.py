"""Readiness and contracts over the wires that are not HTTP."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.sandbox.responders import READERS, answering, as_output
from tests.sandbox.subjects import launch_script

from prony.core.errors import EngineError
from prony.model.address import Address, Wire
from prony.model.exchange import Check, Contract, Request
from prony.model.launch import Readiness
from prony.model.sandbox import Placement
from prony.sandbox import Sandbox
from prony.sandbox.contract import verify
from prony.sandbox.exchange import Reply, exchange, request_bytes

WIRES = list(READERS)
REPLY = b"Status: 201 Created\r\nContent-Type: text/plain\r\n\r\nHello"
CHECK = Check(Request(path="/hello"), body=b"Hello")


@pytest.mark.parametrize("wire", WIRES)
def test_a_request_arrives_as_the_variables_of_cgi_and_its_reply_comes_back(wire: Wire) -> None:
    request = Request("POST", "/a%20b?q=1", (("Content-Type", "text/plain"), ("X-Y", "z" * 200)), b"body\0")
    with answering(wire, as_output(wire, REPLY)) as (address, asked):
        assert exchange(address, request, time.monotonic() + 5) == Reply(201, b"Hello")
    ((variables, body),) = asked
    assert body == b"body\0"
    expected = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/a b",
        "QUERY_STRING": "q=1",
        "REQUEST_URI": "/a%20b?q=1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(address.port),
        "CONTENT_LENGTH": "5",
        "CONTENT_TYPE": "text/plain",
        "HTTP_HOST": f"127.0.0.1:{address.port}",
        "HTTP_X_Y": "z" * 200,
    }
    assert {name: variables.get(name) for name in expected} == expected


@pytest.mark.parametrize("wire", WIRES)
def test_a_contract_holds_over_a_unix_socket_too(wire: Wire, tmp_path: Path) -> None:
    with answering(wire, as_output(wire, REPLY), str(tmp_path / "s")) as (address, asked):
        assert verify(Contract((CHECK,)), address) is None
    assert asked[0][0]["HTTP_HOST"] == "localhost"


@pytest.mark.parametrize("wire", WIRES)
def test_a_wrong_answer_is_named_over_every_wire(wire: Wire) -> None:
    with answering(wire, as_output(wire, REPLY.replace(b"Hello", b"Hullo"))) as (address, _):
        reason = verify(Contract((CHECK,)), address)
    assert reason == "GET /hello: expected the body `Hello` (5 bytes), got `Hullo` (5 bytes)"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"", "the connection was closed before the reply"),
        (b"Status: 200 OK\r\n", "the reply ends within its head"),
        (b"Content-Length: 9\r\n\r\nHello", "the reply ends within its body"),
        (b"Status: OK\r\n\r\n", "the Status of a CGI reply is not 200 to 999"),
    ],
    ids=["nothing", "half a head", "half a body", "nonsense"],
)
def test_a_reply_that_is_none_is_named_with_its_fault(wire: Wire, reply: bytes, reason: str) -> None:
    with answering(wire, as_output(wire, reply)) as (address, _):
        assert verify(Contract((CHECK,)), address) == f"GET /hello: no complete reply: {reason}"


def test_what_a_wire_cannot_say_is_refused() -> None:
    with pytest.raises(EngineError, match="expected no `%00`"):
        request_bytes(Request(path="/%00"), Address("127.0.0.1", 1, wire=Wire.SCGI))


# The first connection is closed without a word: it is not enough.
SERVER = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    server.accept()[0].close()
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            print("asked", flush=True)
            connection.sendall(b"Status: 200 OK\\r\\n\\r\\n")
"""


@pytest.mark.parametrize(("http", "log"), [(True, "asked\n"), (False, "")])
def test_a_server_is_ready_when_it_answers_over_its_own_wire(
    sandbox: Sandbox, placement: Placement, http: bool, log: str
) -> None:
    launch = launch_script(sandbox, SERVER)
    address = replace(launch.address, wire=Wire.SCGI)
    with sandbox.start(
        replace(launch, address=address, readiness=Readiness(http=http)), placement
    ) as subject:
        assert subject.wait_until_ready() > 0
        assert subject.log().text == log

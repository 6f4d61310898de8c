import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prony.model import Address, AddressKind
from prony.monitor.listeners import ListenerGauges, fullest
from prony.monitor.sock_diag import Listener, SockDiag, count_messages


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(stack: ExitStack, family: socket.AddressFamily, address: object, times: int) -> None:
    for _ in range(times):
        client = stack.enter_context(socket.socket(family))
        client.setblocking(False)
        client.connect_ex(address)  # type: ignore[arg-type]


def gauges_of(stack: ExitStack, addresses: dict[str, Address]) -> ListenerGauges:
    gauges = ListenerGauges(addresses, SockDiag)
    stack.callback(gauges.close)
    return gauges


def tcp(listener: socket.socket, kind: AddressKind = AddressKind.TCP4) -> Address:
    return Address("127.0.0.1", listener.getsockname()[1], kind)


def test_what_waits_to_be_accepted_is_counted_with_its_limit(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=7))
    connect(stack, socket.AF_INET, listener.getsockname(), 5)
    gauges = gauges_of(stack, {"server": tcp(listener)})
    listen = {"listen.server.queued": 5, "listen.server.limit": 7, "listen.server.sockets": 1}
    assert gauges.read() == {**listen, "established.server": 5}
    stack.enter_context(listener.accept()[0])
    # Four wait, and the one that was accepted is established still.
    assert gauges.read_at_mark() == {**listen, "listen.server.queued": 4, "established.server": 5}
    assert gauges.missing() == {}


def test_a_full_queue_holds_one_more_than_its_limit(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2))
    connect(stack, socket.AF_INET, listener.getsockname(), 9)
    found = gauges_of(stack, {"server": tcp(listener)}).read()
    assert (found["listen.server.queued"], found["listen.server.limit"]) == (3, 2)


def test_a_listener_on_ipv6_is_found(stack: ExitStack) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    options = {"family": socket.AF_INET6, "backlog": 3, "dualstack_ipv6": True}
    listener = stack.enter_context(socket.create_server(("::", 0), **options))  # type: ignore[arg-type]
    connect(stack, socket.AF_INET, ("127.0.0.1", listener.getsockname()[1]), 2)
    found = gauges_of(stack, {"server": tcp(listener, AddressKind.TCP6)}).read()
    assert (found["listen.server.queued"], found["established.server"]) == (2, 2)


def test_a_unix_listener_is_found_by_its_path(stack: ExitStack, tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(path)
    listener.listen(4)
    connect(stack, socket.AF_UNIX, path, 3)
    gauges = gauges_of(stack, {"server": Address(path, 0, AddressKind.UNIX)})
    assert gauges.read() == {
        "listen.server.queued": 3,
        "listen.server.limit": 4,
        "listen.server.sockets": 1,
        "established.server": 3,
    }
    stack.enter_context(listener.accept()[0])
    found = gauges.read()
    assert (found["listen.server.queued"], found["established.server"]) == (2, 3)


def test_of_listeners_that_share_a_port_the_fullest_is_told(stack: ExitStack) -> None:
    first = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=9, reuse_port=True))
    stack.enter_context(socket.create_server(first.getsockname(), backlog=5, reuse_port=True))
    found = gauges_of(stack, {"server": tcp(first)}).read()
    assert found["listen.server.sockets"] == 2
    assert fullest([Listener(5, 9), Listener(4, 5)]) == Listener(4, 5)


def test_each_process_of_a_subject_has_its_own_queue(stack: ExitStack) -> None:
    front = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=3))
    back = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4))
    connect(stack, socket.AF_INET, front.getsockname(), 2)
    found = gauges_of(stack, {"frontend": tcp(front), "server": tcp(back)}).read()
    assert (found["listen.frontend.queued"], found["listen.server.queued"]) == (2, 0)
    assert (found["established.frontend"], found["established.server"]) == (2, 0)


def test_connections_are_counted_every_other_second_and_queues_each_time(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    gauges = gauges_of(stack, {"server": tcp(listener)})
    reads = [gauges.read() for _ in range(8)]
    assert ["established.server" in read for read in reads] == [True, False, False, False] * 2
    assert all("listen.server.queued" in read for read in reads)


def test_a_great_many_connections_are_counted_exactly(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1000))
    connect(stack, socket.AF_INET, listener.getsockname(), 400)
    with SockDiag() as diag:
        assert diag.tcp_established(listener.getsockname()[1]) == 400


def test_an_address_where_nobody_listens_has_its_reason(stack: ExitStack) -> None:
    gauges = gauges_of(stack, {"server": Address("127.0.0.1", 1)})
    assert gauges.read() == {"established.server": 0}
    assert gauges.missing() == {"listen.server": "the kernel knows no listener at its address"}


def test_a_kernel_that_does_not_tell_is_asked_once() -> None:
    asked = []

    def refuse() -> SockDiag:
        asked.append(1)
        raise PermissionError(1, "Operation not permitted")

    gauges = ListenerGauges({"server": Address("127.0.0.1", 1)}, refuse)
    assert (gauges.read(), gauges.read_at_mark(), len(asked)) == ({}, {}, 1)
    reason = "the kernel does not tell about sockets: Operation not permitted"
    assert gauges.missing() == {"listen.server": reason}


def test_a_kernel_that_stops_to_answer_ends_the_reading() -> None:
    diag = SockDiag()
    gauges = ListenerGauges({"server": Address("127.0.0.1", 1)}, lambda: diag)
    diag.close()
    assert gauges.read() == {}
    assert "Bad file descriptor" in gauges.missing()["listen.server"]


def message(length: int, kind: int = 20) -> bytes:
    return struct.pack("=IHHII", length, kind, 2, 1, os.getpid()) + bytes((length + 3 & ~3) - 16)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (message(108) * 300, 300),
        (message(108) * 3 + message(100), 4),
        (message(100) + message(108) * 3, 4),
        (message(108) * 3 + message(20, 3), 3),
        (message(20, 3), 0),
    ],
)
def test_messages_are_counted_whether_they_are_alike_or_not(data: bytes, count: int) -> None:
    assert count_messages(data) == count

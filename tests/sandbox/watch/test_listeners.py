import os
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prony.model.address import Address, AddressKind
from prony.model.observation import ListenerUsage
from prony.sandbox.watch.listeners import ListenerGauges, Watched, fullest, taking
from prony.sandbox.watch.sock_diag import Listener, SockDiag, count_messages

QUEUE = ("listen.server.queued", "listen.server.limit", "listen.server.sockets")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(
    stack: ExitStack, family: socket.AddressFamily, address: object, times: int
) -> list[socket.socket]:
    clients = [stack.enter_context(socket.socket(family)) for _ in range(times)]
    for client in clients:
        client.setblocking(False)
        client.connect_ex(address)  # type: ignore[arg-type]
    return clients


def gauges_of(
    stack: ExitStack, addresses: dict[str, Address], watched: Watched = Watched.ADDRESSES
) -> ListenerGauges:
    gauges = ListenerGauges(addresses, SockDiag, watched)
    stack.callback(gauges.close)
    return gauges


def tcp(listener: socket.socket, kind: AddressKind = AddressKind.TCP4) -> Address:
    return Address("127.0.0.1", listener.getsockname()[1], kind)


def test_what_waits_to_be_accepted_is_counted_with_its_limit(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=7))
    connect(stack, socket.AF_INET, listener.getsockname(), 5)
    gauges = gauges_of(stack, {"server": tcp(listener)})
    listen = {"listen.server.queued": 5, "listen.server.limit": 7, "listen.server.sockets": 1}
    assert gauges.read() == {**listen, "established.server": 5, "unread.server": 0}
    stack.enter_context(listener.accept()[0])
    # Four wait, and the one that was accepted is established still.
    one_left = {**listen, "listen.server.queued": 4, "established.server": 5, "unread.server": 0}
    assert gauges.read_at_open() == one_left
    assert gauges.missing() == {}


def test_requests_that_nobody_has_read_are_counted(stack: ExitStack) -> None:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=7))
    clients = connect(stack, socket.AF_INET, listener.getsockname(), 3)
    for client in clients[:2]:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    gauges = gauges_of(stack, {"server": tcp(listener)})
    assert gauges.read_at_open()["unread.server"] == 2
    taken = stack.enter_context(listener.accept()[0])
    taken.recv(100)
    assert gauges.read_at_open()["unread.server"] == 1


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
    found = gauges.read_at_close()
    assert (found["listen.server.queued"], found["established.server"]) == (2, 3)


def test_of_listeners_that_share_a_port_the_fullest_is_told(stack: ExitStack) -> None:
    first = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=9, reuse_port=True))
    stack.enter_context(socket.create_server(first.getsockname(), backlog=5, reuse_port=True))
    found = gauges_of(stack, {"server": tcp(first)}).read()
    assert found["listen.server.sockets"] == 2
    assert fullest([listener(queued=5, limit=9), listener(queued=4, limit=5)]).limit == 5


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
        assert diag.tcp_established(*listener.getsockname()) == (400, 0)


def test_an_address_where_nobody_listens_has_its_reason(stack: ExitStack) -> None:
    gauges = gauges_of(stack, {"server": Address("127.0.0.1", 1)})
    assert gauges.read() == {"established.server": 0, "unread.server": 0}
    assert gauges.missing() == {"listen.server": "the kernel has no listener at its address"}


def test_a_kernel_that_does_not_tell_is_asked_once() -> None:
    asked = []

    def refuse() -> SockDiag:
        asked.append(1)
        raise PermissionError(1, "Operation not permitted")

    gauges = ListenerGauges({"server": Address("127.0.0.1", 1)}, refuse)
    assert (gauges.read(), gauges.read_at_open(), gauges.read_at_close(), len(asked)) == ({}, {}, {}, 1)
    reason = "the kernel gives no information about sockets: Operation not permitted"
    assert gauges.missing() == {"listen.server": reason}


def test_a_kernel_that_stops_to_answer_ends_the_reading() -> None:
    diag = SockDiag()
    gauges = ListenerGauges({"server": Address("127.0.0.1", 1)}, lambda: diag)
    diag.close()
    assert gauges.read() == {}
    assert "Bad file descriptor" in gauges.missing()["listen.server"]


# --- which of several ------------------------------------------------------------------------------------


def listener(
    host: str = "127.0.0.1", port: int = 80, kind: AddressKind = AddressKind.TCP4, **changes: int
) -> Listener:
    return Listener(kind, host, port, **{"inode": 1, "queued": 0, "limit": 9, **changes})


ANY = listener("0.0.0.0")
ANY6 = listener("::", kind=AddressKind.TCP6)
ONLY6 = listener("::", kind=AddressKind.TCP6, takes_ipv4=False)
OWN, OWN_TOO, OTHER = listener(inode=2), listener(inode=3), listener("127.0.0.2")
MAPPED = listener("::ffff:127.0.0.1", kind=AddressKind.TCP6)
OWN6 = listener("::1", kind=AddressKind.TCP6)
UNIX = listener("/run/a.sock", 0, AddressKind.UNIX)


@pytest.mark.parametrize(
    ("there", "took"),
    [
        ([OTHER, listener(port=81), OWN6, UNIX, ONLY6], []),
        ([ANY, OTHER], [ANY]),
        ([ANY6, ANY], [ANY]),
        ([ANY6, ONLY6], [ANY6]),
        ([ANY, OWN, OTHER, OWN_TOO], [OWN, OWN_TOO]),
        ([ANY, MAPPED], [MAPPED]),
    ],
)
def test_connections_go_to_the_listener_of_just_their_address_else_to_one_of_any(
    there: list[Listener], took: list[Listener]
) -> None:
    assert taking(Address("127.0.0.1", 80), there) == took


def test_an_address_of_ipv6_is_not_served_by_listeners_of_ipv4() -> None:
    address = Address("::1", 80, AddressKind.TCP6)
    assert taking(address, [ANY, OWN, ANY6]) == [ANY6]
    assert taking(address, [ONLY6, OWN6]) == [OWN6]
    assert taking(Address("/run/a.sock", 0, AddressKind.UNIX), [OWN, UNIX]) == [UNIX]


def test_the_kernel_chooses_between_listeners_as_it_is_said_to(stack: ExitStack) -> None:
    any_address = stack.enter_context(socket.create_server(("0.0.0.0", 0), reuse_port=True))
    port = any_address.getsockname()[1]
    own = stack.enter_context(socket.create_server(("127.0.0.1", port), reuse_port=True))
    connect(stack, socket.AF_INET, ("127.0.0.1", port), 3)
    connect(stack, socket.AF_INET, ("127.0.0.2", port), 2)
    with SockDiag() as diag:
        found = diag.tcp_listeners({port})
        assert {one.host: one.queued for one in found} == {"0.0.0.0": 2, "127.0.0.1": 3}
        assert {one.inode for one in found} == {os.fstat(one.fileno()).st_ino for one in (any_address, own)}
        assert [one.host for one in taking(Address("127.0.0.1", port), found)] == ["127.0.0.1"]
        assert [one.host for one in taking(Address("127.0.0.2", port), found)] == ["0.0.0.0"]
        assert diag.tcp_established("127.0.0.1", port) == (3, 0)


def test_a_listener_that_takes_both_families_is_told_from_one_of_ipv6_alone(stack: ExitStack) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    both = stack.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True))
    only = stack.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6))
    ports = [one.getsockname()[1] for one in (both, only)]
    connect(stack, socket.AF_INET, ("127.0.0.1", ports[0]), 2)
    with SockDiag() as diag:
        takes = {one.port: one.takes_ipv4 for one in diag.tcp_listeners(set(ports))}
        assert takes == {ports[0]: True, ports[1]: False}
        assert diag.tcp_established("127.0.0.1", ports[0]) == (2, 0)
        assert diag.tcp_established("127.0.0.2", ports[0]) == (0, 0)


def test_a_listener_on_another_address_of_the_same_port_is_not_the_subjects(stack: ExitStack) -> None:
    own = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=5))
    other = stack.enter_context(socket.create_server(("127.0.0.2", own.getsockname()[1]), backlog=1))
    connect(stack, socket.AF_INET, other.getsockname(), 2)
    connect(stack, socket.AF_INET, own.getsockname(), 1)
    found = gauges_of(stack, {"server": tcp(own)}).read()
    assert found == {
        "listen.server.queued": 1,
        "listen.server.limit": 5,
        "listen.server.sockets": 1,
        "established.server": 1,
        "unread.server": 0,
    }


# --- over a window ---------------------------------------------------------------------------------------


def test_each_listener_that_shares_an_address_keeps_its_fullest_state_of_the_window(stack: ExitStack) -> None:
    first = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=9, reuse_port=True))
    address = first.getsockname()
    gauges = gauges_of(stack, {"server": tcp(first)})
    connect(stack, socket.AF_INET, address, 4)
    gauges.read_at_open()
    stack.enter_context(first.accept()[0])
    # Whoever comes now is given to either by a hash of the addresses.
    second = stack.enter_context(socket.create_server(address, backlog=3, reuse_port=True))
    gauges.read()
    gauges.read_at_close()
    connect(stack, socket.AF_INET, address, 9)
    gauges.read()
    where = f"127.0.0.1:{address[1]}"
    inodes = [os.fstat(one.fileno()).st_ino for one in (first, second)]
    assert gauges.usage() == (
        ListenerUsage("server", AddressKind.TCP4, where, inodes[0], queued_max=4, limit=9, samples=3),
        ListenerUsage("server", AddressKind.TCP4, where, inodes[1], queued_max=0, limit=3, samples=2),
    )


def test_in_a_network_of_its_own_every_listener_is_the_subjects(stack: ExitStack, tmp_path: Path) -> None:
    own = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=5))
    other = stack.enter_context(socket.create_server(("127.0.0.2", 0), backlog=6))
    path = str(tmp_path / "control.sock")
    control = stack.enter_context(socket.socket(socket.AF_UNIX))
    control.bind(path)
    control.listen(7)
    connect(stack, socket.AF_UNIX, path, 2)
    all_of_them = gauges_of(stack, {"server": tcp(own)}, Watched.NETWORK)
    declared = gauges_of(stack, {"server": tcp(own)})
    for gauges in (all_of_them, declared):
        assert set(gauges.read_at_open()) == {*QUEUE, "established.server", "unread.server"}
    found = {one.address: (one.process, one.queued_max, one.limit) for one in all_of_them.usage()}
    assert found[f"127.0.0.1:{own.getsockname()[1]}"] == ("server", 0, 5)
    assert found[f"127.0.0.2:{other.getsockname()[1]}"] == (None, 0, 6)
    assert found[path] == (None, 2, 7)
    assert all_of_them.usage()[0].process == "server"
    assert [one.process for one in declared.usage()] == ["server"]


def test_an_abstract_unix_socket_is_named_as_people_write_it(stack: ExitStack) -> None:
    listening = stack.enter_context(socket.socket(socket.AF_UNIX))
    name = f"prony-test-{os.getpid()}"
    listening.bind(f"\0{name}")
    listening.listen(1)
    with SockDiag() as diag:
        assert f"@{name}" in [one.host for one in diag.unix_listeners()]


def test_nothing_is_kept_of_a_listener_outside_of_the_window(stack: ExitStack) -> None:
    own = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    gauges = gauges_of(stack, {"server": tcp(own)})
    gauges.read()
    assert gauges.usage() == ()


# --- many messages ---------------------------------------------------------------------------------------


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
    ids=["alike", "longer first", "shorter first", "with an end", "an end alone"],
)
def test_messages_are_counted_whether_they_are_alike_or_not(data: bytes, count: int) -> None:
    assert count_messages(data) == (count, 0)


def test_a_socket_with_a_name_that_is_no_text_has_one_that_can_be_stored(stack: ExitStack) -> None:
    name = b"\0prony-\xff-" + os.urandom(4).hex().encode()
    held = stack.enter_context(socket.socket(socket.AF_UNIX))
    held.bind(name)
    held.listen()
    with SockDiag() as diag:
        shown = [one.host for one in diag.unix_listeners() if name[-8:].decode() in one.host]
    assert shown == [f"@prony-\\xff-{name[-8:].decode()}"]

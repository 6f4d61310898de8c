"""Ports that closed connections keep: told from those that cost nobody one."""

import os
import socket
from contextlib import ExitStack

import pytest

from prony.sandbox.watch.listeners import WaitingPorts
from prony.sandbox.watch.sock_diag import SockDiag


@pytest.fixture
def listeners():
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]


def port(one):
    return one.getsockname()[1]


def exchange(listener, *, client_first):
    """Open a connection, and close it from one side, then from the other: the first one keeps TIME_WAIT."""
    client = socket.create_connection(listener.getsockname())
    accepted, _ = listener.accept()
    first, last = (client, accepted) if client_first else (accepted, client)
    first.close()
    last.recv(1)
    last.close()


def counted(entrance, behind):
    counters = WaitingPorts(port(entrance), behind and port(behind), SockDiag)
    counters.open_window()
    counters.close_window()
    return counters.deltas()


def test_ports_that_a_frontend_used_up_towards_its_server_are_counted_and_no_others(listeners):
    entrance, server, database = listeners
    before = counted(entrance, server)[0]["ports.waiting"]
    for _ in range(before + 5):
        exchange(server, client_first=True)
    for _ in range(3):
        exchange(database, client_first=True)
        exchange(entrance, client_first=True)
        exchange(entrance, client_first=False)
    for _ in range(before + 9):
        exchange(server, client_first=False)
    found, missing = counted(entrance, server)
    assert found == {"ports.waiting": before + 5, "ports.waiting_frontend": before + 5}
    assert missing == {}


def test_without_a_frontend_the_busiest_peer_counts(listeners):
    entrance, _, database = listeners
    before = counted(entrance, None)[0]["ports.waiting"]
    for _ in range(before + 4):
        exchange(database, client_first=True)
    assert counted(entrance, None)[0] == {"ports.waiting": before + 4}


def test_a_port_is_taken_towards_one_address_only(listeners):
    entrance, first, _ = listeners
    with socket.create_server(("127.0.0.2", port(first))) as second:
        before = counted(entrance, first)[0]
        for _ in range(before["ports.waiting"] + 4):
            exchange(first, client_first=True)
        for _ in range(before["ports.waiting"] + 6):
            exchange(second, client_first=True)
        found, _ = counted(entrance, first)
    most = before["ports.waiting"] + 6
    assert found == {"ports.waiting": most, "ports.waiting_frontend": most}


def test_an_ipv4_address_is_the_same_whichever_kind_of_socket_asks(listeners):
    (listener, *_) = listeners
    with ExitStack() as stack:
        plain = stack.enter_context(socket.create_connection(listener.getsockname()))
        mapped = stack.enter_context(socket.socket(socket.AF_INET6))
        mapped.connect((f"::ffff:{listener.getsockname()[0]}", port(listener)))
        inodes = {os.fstat(one.fileno()).st_ino for one in (plain, mapped)}
        with SockDiag() as kernel:
            found = [one for one in kernel.tcp_outgoing([]) if one.inode in inodes]
    assert {one.peer_host for one in found} == {socket.inet_aton("127.0.0.1") + bytes(12)}
    assert len(found) == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(93, "Protocol not supported"), "Protocol not supported"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_a_kernel_that_does_not_answer_is_named(error, words):
    def refuse():
        raise error

    counters = WaitingPorts(80, None, refuse)
    counters.close_window()
    assert counters.deltas() == ({}, {"ports.waiting": f"the kernel does not report connections: {words}"})

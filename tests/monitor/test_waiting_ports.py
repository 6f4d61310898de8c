"""Ports that closed connections keep: told from those that cost nobody one."""

import socket
from contextlib import ExitStack

import pytest

from prony.monitor.sock_diag import SockDiag
from prony.monitor.waiting_ports import WaitingPorts


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


def test_a_kernel_that_does_not_answer_is_named():
    def refuse():
        raise OSError(93, "Protocol not supported")

    counters = WaitingPorts(80, None, refuse)
    counters.close_window()
    assert counters.deltas() == (
        {},
        {"ports.waiting": "the kernel does not report connections: Protocol not supported"},
    )

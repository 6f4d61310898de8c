"""How connections are spread over workers: counted by whose descriptors they are."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from prony.model.address import Address, AddressKind
from prony.sandbox.watch.listeners import WorkerConnections
from prony.sandbox.watch.sock_diag import SockDiag

TAKES = (
    "import socket, sys\n"
    "listener = socket.socket(fileno=int(sys.argv[1]))\n"
    "kept = [listener.accept() for _ in range(int(sys.argv[2]))]\n"
    "print(flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def worker(stack, listener, number):
    """A process that accepts so many connections, and keeps them."""
    words = [sys.executable, "-c", TAKES, str(listener.fileno()), str(number)]
    child = stack.enter_context(
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[listener.fileno()])
    )
    stack.callback(child.kill)
    for _ in range(number):
        stack.enter_context(socket.create_connection(listener.getsockname()))
    child.stdout.readline()
    return child.pid


def counted(workers, address):
    counters = WorkerConnections(lambda: workers, address, SockDiag)
    counters.open_window()
    counters.close_window()
    return counters.deltas()


def test_each_worker_is_counted_with_the_connections_that_it_keeps(stack):
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    address = Address("127.0.0.1", listener.getsockname()[1])
    workers = [worker(stack, listener, 5), worker(stack, listener, 1)]
    # One that nobody has accepted is nobody's.
    stack.enter_context(socket.create_connection(listener.getsockname()))
    assert counted(workers, address) == (
        {
            "workers.watched": 2,
            "workers.connections": 6,
            "workers.connections_most": 5,
            "workers.connections_least": 1,
        },
        {},
    )


def test_one_worker_and_a_unix_socket_are_not_counted():
    assert counted([os.getpid()], Address("127.0.0.1", 1)) == ({}, {})
    unix = Address("/run/x.sock", 0, kind=AddressKind.UNIX)
    assert counted([os.getpid(), os.getpid()], unix) == ({}, {})


def test_a_worker_that_has_ended_has_none(stack):
    gone = subprocess.Popen(["true"])
    gone.wait()
    found, _ = counted([os.getpid(), gone.pid], Address("127.0.0.1", 1))
    assert (found["workers.connections"], found["workers.watched"]) == (0, 2)


def test_a_kernel_that_does_not_answer_is_the_reason():
    def refuse():
        raise OSError(1, "Operation not permitted")

    counters = WorkerConnections(lambda: [1, 2], Address("127.0.0.1", 1), refuse)
    counters.close_window()
    assert counters.deltas() == ({}, {"workers.connections": "cannot be read: Operation not permitted"})

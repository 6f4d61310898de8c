"""A server's own connections to others: told from those that clients opened to it."""

import os
import socket
import time
from contextlib import ExitStack

import pytest

from prony.sandbox.watch.partners import DownstreamGauges
from prony.sandbox.watch.sock_diag import SockDiag


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def listener(stack):
    return stack.enter_context(socket.create_server(("127.0.0.1", 0)))


def connected(stack, to):
    return stack.enter_context(socket.create_connection(to.getsockname()))


def inode(one):
    return os.fstat(one.fileno()).st_ino


def test_connections_to_others_are_read_without_those_of_clients(stack):
    web, database = listener(stack), listener(stack)
    clients = [connected(stack, web) for _ in range(5)]
    pool = [connected(stack, database) for _ in range(3)]
    with SockDiag() as kernel:
        found = {one.inode: one.peer_port for one in kernel.tcp_outgoing([web.getsockname()[1]])}
    assert {inode(one) for one in pool} <= found.keys()
    assert not {inode(one) for one in clients} & found.keys()
    assert found[inode(pool[0])] == database.getsockname()[1]


def test_the_end_at_the_other_server_is_not_counted_a_second_time(stack):
    web, database = listener(stack), listener(stack)
    connected(stack, database)
    accepted = stack.enter_context(database.accept()[0])
    with SockDiag() as kernel:
        assert inode(accepted) not in {one.inode for one in kernel.tcp_outgoing([web.getsockname()[1]])}


def test_a_frontend_and_a_server_behind_it_are_both_left_out(stack):
    front, web = listener(stack), listener(stack)
    both = [connected(stack, front), connected(stack, web)]
    ports = [one.getsockname()[1] for one in (front, web)]
    with SockDiag() as kernel:
        assert not {inode(one) for one in both} & {one.inode for one in kernel.tcp_outgoing(ports)}


def test_the_gauges_keep_what_was_seen(stack, monkeypatch):
    monkeypatch.setattr("prony.sandbox.watch.partners._REST", 0)
    web, database = listener(stack), listener(stack)
    gauges = DownstreamGauges([web.getsockname()[1]], SockDiag)
    first = connected(stack, database)
    assert gauges.read()["downstream.connections"] >= 1
    own = inode(first)
    first.close()
    gauges.read()
    assert own in gauges.inodes()
    gauges.close()
    assert gauges.read() == {}


def test_a_reply_is_due_where_it_sent_after_it_last_received(stack, monkeypatch):
    monkeypatch.setattr("prony.sandbox.watch.partners._REST", 0)
    web, database = listener(stack), listener(stack)
    gauges = DownstreamGauges([web.getsockname()[1]], SockDiag, lambda: {inode(one) for one in pool})
    pool = [connected(stack, database) for _ in range(3)]
    peers = [stack.enter_context(database.accept()[0]) for _ in pool]
    for one, peer in zip(pool, peers, strict=True):
        one.sendall(b"?")
        time.sleep(0.02)
        peer.sendall(b"!")
        time.sleep(0.02)
    answered = gauges.read()
    for one in pool[:2]:
        one.sendall(b"?")
    waiting = gauges.read()
    port = database.getsockname()[1]
    assert (answered["downstream.at_port"], answered["downstream.waits"]) == (3, 0)
    assert (waiting["downstream.waits"], waiting["downstream.waits_port"]) == (2, port)
    assert waiting["downstream.sent"] - answered["downstream.sent"] == 2
    gauges.close()


def test_after_a_read_the_kernel_is_left_alone(stack, monkeypatch):
    monkeypatch.setattr("prony.sandbox.watch.partners._REST", 10**9)
    web, database = listener(stack), listener(stack)
    connected(stack, database)
    gauges = DownstreamGauges([web.getsockname()[1]], SockDiag)
    assert (bool(gauges.read()), gauges.read()) == (True, {})
    gauges.close()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(93, "Protocol not supported"), "Protocol not supported"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_a_kernel_that_does_not_answer_is_not_asked_again(error, words):
    def refuse():
        raise error

    gauges = DownstreamGauges([80], refuse)
    assert gauges.read() == {}
    assert gauges.missing() == {"downstream.connections": f"the kernel does not report connections: {words}"}

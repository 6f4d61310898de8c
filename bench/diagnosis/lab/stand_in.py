"""A network that stands in for the machine's: a loopback of its own, with earlier trials' sockets.

The calling thread moves into a new network namespace, and back in the end: subjects and generators that it
starts meanwhile share it, as they would the host's. So nothing of the machine changes.

>>> PEER_PORT
39999
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prony.core.errors import HostError
from prony.core.sysctl import as_written
from prony.sandbox.linux import (
    NEW_NETWORK,
    enter_network,
    may_enter_networks,
    raise_loopback,
    unshare,
    write_network_settings,
)
from prony.sandbox.remains import carried_over, read_sockets

PEER_PORT = 39_999
"""Where the peer listens that outlives each trial: no port that a server or a client is given."""

_PATIENCE_S = 5.0

# It lives until its standard input ends, and answers each byte with one, as a database would each query.
_PEER = """
import contextlib, socket, sys, threading
listener = socket.socket(fileno=int(sys.argv[1]))
def answer(taken):
    with taken, contextlib.suppress(OSError):
        while taken.recv(1):
            taken.sendall(b"!")
def serve():
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class StandIn:
    """What stands in for the host's network: its ``settings`` of the kernel, and how many sockets in
    TIME_WAIT earlier trials have left there, ``carried``, towards a peer that outlives them.
    """

    settings: Mapping[str, str]
    carried: int = 0


@contextlib.contextmanager
def stand_in_network(wanted: StandIn, cpus: tuple[int, ...]) -> Iterator[None]:
    """Within the block, let the calling thread's network be one that nobody else has; the peer runs on
    ``cpus``.

    *Errors*: HostError where only root may, or where the kernel refuses a setting.
    """
    if not may_enter_networks():
        raise HostError("a network that stands in for the machine's needs root", hint="sudo prony ...")
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        unshare(NEW_NETWORK)
        try:
            _prepare(wanted.settings)
            with _peer(cpus):
                _leave(wanted.carried)
                yield
        finally:
            enter_network(f"/proc/self/fd/{before}")
    finally:
        os.close(before)


def _prepare(settings: Mapping[str, str]) -> None:
    raise_loopback()
    refused = write_network_settings({name: as_written(value) for name, value in settings.items()})
    if refused:
        raise HostError(f"the kernel refuses {', '.join(refused)} in a network of its own")


@contextlib.contextmanager
def _peer(cpus: tuple[int, ...]) -> Iterator[None]:
    with socket.create_server(("127.0.0.1", PEER_PORT), backlog=512) as listener:
        words = [sys.executable, "-c", _PEER, str(listener.fileno())]
        running = subprocess.Popen(
            words, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=[listener.fileno()]
        )
    with running:
        os.sched_setaffinity(running.pid, cpus)
        yield
        # Its end of input, as the block ends, ends it.


def _leave(count: int) -> None:
    """Leave so many sockets in TIME_WAIT: whoever closes first keeps them.

    *Errors*: HostError where they do not come about in time.
    """
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", PEER_PORT), timeout=_PATIENCE_S) as asking:
            asking.sendall(b"?")
            asking.recv(1)
    until = time.monotonic() + _PATIENCE_S
    while carried_over(PEER_PORT, read_sockets()).time_wait < count:
        if time.monotonic() > until:
            raise HostError(f"{count} sockets in TIME_WAIT were to be left, and did not come about")

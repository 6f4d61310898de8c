"""Processes that serve as workers of a fleet, on this machine or over SSH.

A worker gets its order as a line of JSON on its standard input, before it another one where it has to take a
seat, and ends when that closes: whoever started it is gone then, also where ssh lies between them.

>>> ssh_command(Host(address="load1", user="prony", python="/opt/prony/bin/python"), None)[-3:]
['--', 'load1', '/opt/prony/bin/python -P -m prony.engine.fleet.cluster']
"""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from prony.core.errors import EngineError
from prony.engine.child_process import boot_command
from prony.engine.fleet.hosts import Host, command_there, end_of, started_process
from prony.model.json_codec import Json

_MODULE = "prony.engine.fleet.cluster"
# Interpreter, Dask and a handshake: some seconds where CPUs are shared.
_START_S = 60.0
_LOOK_EVERY_S = 0.05
_END_S = 10


@dataclass(frozen=True, slots=True)
class StartedWorker:
    """A process that is a worker, or leads to one: its ``name`` in reports, and what it says of errors."""

    name: str
    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]

    def give(self, order: Json) -> None:
        """Give the worker an order; of one that has ended, nothing."""
        pipe = end_of(self.process.stdin)
        with contextlib.suppress(BrokenPipeError):
            # Stays open: when it closes, the worker knows that Prony is gone.
            pipe.write(json.dumps({**order, "name": self.name}).encode() + b"\n")

    def last_words(self) -> str:
        """Return the last line of its errors, or its exit status where it has none."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"status {self.process.returncode}"


def here_command() -> list[str]:
    """Return the command of a worker on this machine."""
    return boot_command(_MODULE, [place for place in sys.path if place.startswith("/")])


def ssh_command(host: Host, config: str | None) -> list[str]:
    """Return the command of a worker on another machine."""
    return command_there(host, config, _MODULE)


@contextlib.contextmanager
def started(name: str, command: Sequence[str]) -> Iterator[StartedWorker]:
    """Yield a worker that waits for its order; it is gone afterwards.

    *Errors*: HostError when the program is not installed.
    """
    with TemporaryFile() as errors:
        worker = StartedWorker(name, started_process(command, subprocess.DEVNULL, errors), errors)
        try:
            yield worker
        finally:
            kill([worker])


def wait_for(workers: Sequence[StartedWorker], connected: Callable[[], Collection[str]]) -> None:
    """Wait until the names of all of them are among the ``connected``.

    *Errors*: EngineError naming one that ended, or that nobody hears of.
    """
    end_s = time.monotonic() + _START_S
    while missing := {one.name for one in workers}.difference(connected()):
        ended = [one for one in workers if one.process.poll() is not None]
        if ended:
            raise EngineError(
                f"generator `{ended[0].name}` ended when it was started: {ended[0].last_words()}"
            )
        if time.monotonic() > end_s:
            names = ", ".join(sorted(missing))
            raise EngineError(f"generators of the fleet did not start within {_START_S:g} s: {names}")
        time.sleep(_LOOK_EVERY_S)


def kill(workers: Sequence[StartedWorker]) -> None:
    """End what holds nothing that is worth a farewell, stopped or not.

    An ssh that another user started cannot be killed: it ends with its input.
    """
    for one in workers:
        with contextlib.suppress(BrokenPipeError):
            end_of(one.process.stdin).close()
        with contextlib.suppress(PermissionError):
            one.process.kill()
    for one in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.process.wait(_END_S)

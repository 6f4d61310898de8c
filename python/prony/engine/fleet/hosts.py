"""The machines of a fleet that Prony starts over SSH, as a file names them: ``--fleet hosts.toml``.

>>> Host(address="load1.example", workers=2).names
('load1.example-1', 'load1.example-2')

Runs Prony on another machine, by the system's ``ssh``, for a fleet and for a target.

>>> command_there(SshHost(address="load1", python="/opt/prony/bin/python"), None, "prony.x")[-3:]
['--', 'load1', '/opt/prony/bin/python -P -m prony.x']

Processes that serve as workers of a fleet, on this machine or over SSH.

A worker gets its order as a line of JSON on its standard input, before it another one where it has to take a
seat, and ends when that closes: whoever started it is gone then, also where ssh lies between them.

>>> ssh_command(Host(address="load1", user="prony", python="/opt/prony/bin/python"), None)[-3:]
['--', 'load1', '/opt/prony/bin/python -P -m prony.engine.fleet.cluster']
"""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prony.catalog.schema.toml_source import SourceError, read_toml, validate
from prony.core.errors import EngineError, HostError, UsageError
from prony.engine.allowed_hosts import is_loopback
from prony.engine.child_process import boot_command
from prony.model.json_codec import Json

_DOCS = "docs/guides/fleet.md describes such a file"
# No word that ssh takes for an option, and nothing that a shell on the other side would read.
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$", max_length=253)]
_Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1000)]
_Port = Annotated[int, Field(ge=1, le=65535)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SshHost(_Table):
    """A machine as ssh reaches it. ``address``: as ssh takes it; ``python``: an interpreter there that has
    Prony.
    """

    address: _Name
    user: _Name | None = None
    port: _Port | None = None
    identity: _Line | None = None
    python: _Line = "python3"


class Host(SshHost):
    """One machine of a fleet. ``name``: in reports, null: its address; ``certificates``: the folder of
    certificates there; ``workers``: generators, each a process.
    """

    name: _Name | None = None
    certificates: _Line = "fleet-certificates"
    workers: Annotated[int, Field(ge=1, le=64)] = 1

    @property
    def names(self) -> tuple[str, ...]:
        """What its generators are called."""
        name = self.name or self.address
        return (name,) if self.workers == 1 else tuple(f"{name}-{k + 1}" for k in range(self.workers))


class TargetHost(SshHost):
    """The machine of ``prony run --target``. ``listen``: the address there at which servers take the load,
    null: the one that ssh reached.
    """

    ssh_config: _Line | None = None
    listen: _Name | None = None

    @property
    def name(self) -> str:
        """What is typed after `ssh`."""
        return f"{self.user}@{self.address}" if self.user else self.address


class Hosts(_Table):
    """Machines, and where they reach this one. ``listen``: the address of this machine at which its scheduler
    listens while a load runs; ``port``: null: a free one; ``certificates``: the folder of certificates here;
    ``ssh_config``: the file that ssh reads in place of the user's own.
    """

    listen: _Name
    port: _Port | None = None
    certificates: _Line
    ssh_config: _Line | None = None
    hosts: Annotated[list[Host], Field(min_length=1, max_length=1000)]

    @property
    def is_here(self) -> bool:
        """Whether all of them are this machine."""
        return is_loopback(self.listen) and all(is_loopback(one.address) for one in self.hosts)

    @property
    def names(self) -> tuple[str, ...]:
        """What all generators are called, in the order of the file."""
        return tuple(name for one in self.hosts for name in one.names)


def target_host(text: str) -> TargetHost:
    """Return the machine that ``--target`` names, or that its file describes; places are beside that file.

    *Errors*: UsageError with all that is wrong with it.
    """
    try:
        if not text.endswith(".toml"):
            user, at, address = text.rpartition("@")
            return TargetHost(address=address, user=user if at else None)
        found = validate(read_toml(Path(text)), TargetHost)
    except SourceError as error:
        raise UsageError(error.message, hint=_DOCS) from error
    except ValidationError:
        raise UsageError(
            f"`--target {text}`: expected a machine as ssh takes it, or a file such as target.toml"
        ) from None

    def beside(place: str | None) -> str | None:
        return place and str((Path(text).parent / Path(place).expanduser()).absolute())

    places = {"identity": beside(found.identity), "ssh_config": beside(found.ssh_config)}
    return found.model_copy(update=places)


def read_hosts(file: Path) -> Hosts:
    """Return the machines that a file names.

    *Errors*: UsageError with all that is wrong with it.
    """
    try:
        found = validate(read_toml(file), Hosts)
    except SourceError as error:
        raise UsageError(error.message, hint=_DOCS) from error
    twice = {name for name in found.names if found.names.count(name) > 1}
    if twice:
        raise UsageError(
            f"{file}: two generators are called `{min(twice)}`", hint="give each machine a `name` of its own"
        )
    return found


# --- Prony on another machine -----------------------------------------------------------------------------


_CONNECT_S = 10
# A connection that was cut ends within four times this.
_ALIVE_EVERY_S = 4
_PARTS_OF_SSH_CONNECTION = 4


def command_there(host: SshHost, config: str | None, module: str) -> list[str]:
    """Return the command that runs ``module`` there. It asks for no password: there is nobody to type it.

    ``config``: the file that ssh reads in place of the user's own. ssh gives the other side's shell one text,
    in which each word is quoted.
    """
    options = (("-F", config), ("-p", host.port), ("-i", host.identity), ("-l", host.user))
    asked = [word for option, value in options if value is not None for word in (option, str(value))]
    settings = ("BatchMode=yes", f"ConnectTimeout={_CONNECT_S}", f"ServerAliveInterval={_ALIVE_EVERY_S}")
    usual = ["-T", *(word for one in settings for word in ("-o", one))]
    remote = shlex.join([host.python, "-P", "-m", module])
    return ["ssh", *usual, *asked, "--", host.address, remote]


def started_process(
    command: Sequence[str], stdout: int, stderr: IO[bytes] | None = None
) -> "subprocess.Popen[bytes]":
    """Start a command whose input this side holds: when that closes, the other side knows that Prony is gone.

    *Errors*: HostError when the program is not installed.
    """
    # Asked for: with a closed folder on PATH, the system says "permission denied" of what is nowhere.
    if shutil.which(command[0]) is None:
        hint = "apt-get install openssh-client" if command[0] == "ssh" else None
        raise HostError(f"`{command[0]}` is not installed", hint=hint)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        bufsize=0,
        # Only Prony handles Ctrl-C in the terminal.
        start_new_session=True,
    )


def end_of(pipe: IO[bytes] | None) -> IO[bytes]:
    """Return an end of a pipe that a process was started with."""
    if pipe is None:
        raise AssertionError("a process has its pipes")
    return pipe


def reached_address() -> str:
    """Return the address of this machine at which ssh reached it, else the loopback. *Source*: ssh(1)."""
    reached = os.environ.get("SSH_CONNECTION", "").split()
    return reached[2] if len(reached) == _PARTS_OF_SSH_CONNECTION else "127.0.0.1"


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

"""The machines of a fleet that Prony starts over SSH, as a file names them: ``--fleet hosts.toml``.

>>> Host(address="load1.example", workers=2).names
('load1.example-1', 'load1.example-2')

Runs Prony on another machine, by the system's ``ssh``, for a fleet and for a target.

>>> command_there(SshHost(address="load1", python="/opt/prony/bin/python"), None, "prony.x")[-3:]
['--', 'load1', '/opt/prony/bin/python -P -m prony.x']
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prony.catalog.schema.toml_source import SourceError, read_toml, validate
from prony.core.errors import HostError, UsageError
from prony.engine.allowed_hosts import is_loopback

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

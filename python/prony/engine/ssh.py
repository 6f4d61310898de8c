"""Runs Prony on another machine, by the system's ``ssh``, for a fleet and for a target.

>>> command_there(SshHost(address="load1", python="/opt/prony/bin/python"), None, "prony.x")[-3:]
['--', 'load1', '/opt/prony/bin/python -P -m prony.x']
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import IO

from prony.core.errors import HostError
from prony.engine.fleet.hosts import SshHost

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

"""What to start: the exact processes, their order, when they are ready, their roles, how to stop them.

>>> frontend = Launch(("proxy",), Address("127.0.0.1", 8000), name="frontend")
>>> Launch(("server",), Address("127.0.0.1", 8001), frontend=frontend).entrance.port
8000
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from prony.core.units import SECOND_NS
from prony.model.address import Address


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a subject is ready: it accepts a connection and, with ``http``, answers the first request."""

    timeout_ns: int = 15 * SECOND_NS
    http: bool = True


@dataclass(frozen=True, slots=True)
class StopRule:
    """How to stop a subject: the signal to its main process, and the time before all of it is killed."""

    signal: str = "SIGTERM"
    timeout_ns: int = 5 * SECOND_NS


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Gives a process its role: the first rule that fits wins.

    ``where`` is ``main`` (the process that was started), ``child`` (any other) or ``command`` (the command
    line contains ``pattern``).
    """

    role: str
    where: Literal["main", "child", "command"] = "main"
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start: the complete command, without placeholders; and what must run beside it.

    ``files`` are written, before the start, into the process's own folder, which is its working directory.
    ``services`` are started before it, the ``backends``, which are more of it, and the ``frontend`` after it:
    the load then goes to the frontend. ``name`` distinguishes them: ``server``, ``server-2``, ``frontend``,
    or the service's name. ``folder``: a working directory other than its own folder. ``secrets`` are files
    too, which nobody but its user can read. ``before``: a command that ends before it is started, as the same
    user, in the same place; empty: none. ``is_own_port``: the program listens there whatever it is given.
    """

    command: tuple[str, ...]
    address: Address
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    readiness: Readiness = Readiness()
    stop: StopRule = StopRule()
    roles: tuple[RoleRule, ...] = (RoleRule("server"),)
    name: str = "server"
    folder: str | None = None
    services: tuple["Launch", ...] = ()
    backends: tuple["Launch", ...] = ()
    frontend: "Launch | None" = None
    before: tuple[str, ...] = ()
    is_own_port: bool = False

    @property
    def processes(self) -> tuple["Launch", ...]:
        """All processes to start, including this one, in their order."""
        return (*self.services, self, *self.backends, *((self.frontend,) if self.frontend else ()))

    @property
    def entrance(self) -> Address:
        """Where the load goes."""
        return self.frontend.address if self.frontend else self.address

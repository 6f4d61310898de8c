"""Where subjects run: how they are isolated, and on which CPUs.

>>> Placement(server_cpus=(0,), generator_cpus=(1,)).shared
False

>>> EngineSeat(cpus=(1,)).network_namespace
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.model.json_codec import OPTIONAL, REST


class SandboxKind(StrEnum):
    """What keeps a subject apart: processes in namespaces, control groups around these, or a container."""

    PROCESS = "process"
    CGROUP = "cgroup"
    CONTAINER = "container"


class Network(StrEnum):
    """Where server and generator meet: in a network namespace of their own, or on the host's loopback."""

    ISOLATED = "isolated"
    HOST = "host"


class LimitHolding(StrEnum):
    """How far a limit holds: by its effect, only as long as the server leaves it alone, or not at all."""

    ENFORCED = "enforced"
    AFFINITY = "by affinity only"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class LimitState:
    """How far a kind of limit holds on this machine, and the evidence, or why it does not hold."""

    holding: LimitHolding
    reason: str


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit that Prony sets where nobody asked for one, so that a subject cannot exhaust the machine.

    ``at``: bytes, or a number of processes and threads; ``holding``: how far it holds, ``reason``: the
    evidence, or why it does not.
    """

    at: int
    holding: LimitHolding
    reason: str


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """How subjects are isolated.

    ``network``: the requested one; privileges may not allow an isolated one. ``share_cpus`` gives the server
    all CPUs, also those that the generator is on. ``run_as``: the user that subjects run as when Prony is
    root; null: the caller of sudo, else ``nobody``. The limits apply to the server only, to all its processes
    together: ``cpu_quota`` in CPUs, such as 0.5, also bounds how many CPUs it gets; ``memory_bytes`` without
    swap; ``pids`` counts threads. Reports name each limit that the kind of sandbox cannot enforce.
    ``sysctl``: settings of the kernel in the subject's own network, with their values, such as
    `net.core.somaxconn`. ``listen``: the address of this machine at which the subject takes the load; null:
    its loopback.
    """

    kind: SandboxKind = SandboxKind.PROCESS
    network: Network = Network.ISOLATED
    share_cpus: bool = False
    run_as: str | None = None
    cpu_quota: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None
    sysctl: tuple[tuple[str, str], ...] = field(default=(), metadata=OPTIONAL)
    listen: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """What keeps subjects apart on this machine. ``missing`` names what does not, with its reason.

    ``cpus``: how they are held to theirs, in words. ``limits``: how far each limit that is asked for holds
    here; ``ceilings``: the limits that nobody asked for. ``kind``: the sandbox that was taken; ``reasons``:
    why no stronger one was. Null: not known.
    """

    network: Network | None = field(default=None, metadata=OPTIONAL)
    pid_namespace: bool | None = field(default=None, metadata=OPTIONAL)
    user: str | None = field(default=None, metadata=OPTIONAL)
    cpus: str | None = field(default=None, metadata=OPTIONAL)
    limits: Mapping[str, LimitState] = field(default_factory=dict, metadata=OPTIONAL)
    ceilings: Mapping[str, Ceiling] = field(default_factory=dict, metadata=OPTIONAL)
    missing: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)
    kind: SandboxKind | None = field(default=None, metadata=OPTIONAL)
    reasons: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    free: Mapping[str, object] = field(default_factory=dict, metadata=REST)


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs of server and generator; where ``shared``, the server has the generator's too."""

    server_cpus: tuple[int, ...]
    generator_cpus: tuple[int, ...]
    shared: bool = False


# --- the generator's seat ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EngineSeat:
    """The generator's seat: in the subject's network, on its own CPUs.

    ``network_namespace`` is a file such as ``/proc/7/ns/net``, null for the host's. ``uid``, ``gid``,
    ``groups``: the user to change to after entering the namespace; null: keep the user. ``folder``: where it
    may write files, which are removed with the trial's; null: the folder of temporary files. ``joins``: the
    files by which it enters its control groups.
    """

    cpus: tuple[int, ...]
    network_namespace: str | None = None
    uid: int | None = None
    gid: int | None = None
    groups: tuple[int, ...] | None = None
    nice: int = 0
    folder: str | None = None
    joins: tuple[str, ...] = ()

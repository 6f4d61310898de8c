"""Where subjects run: how they are isolated, and on which CPUs. Must not know what runs there.

>>> Placement(server_cpus=(0,), generator_cpus=(1,)).shared
False
"""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Placement", "SandboxChoice"]


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """How subjects are isolated.

    ``network``: ``isolated`` puts server and generator together into a network namespace of their own if
    privileges allow it, ``host`` uses the host's loopback. ``share_cpus`` lets generator and server run on
    one CPU. ``run_as``: the user that subjects run as when Prony is root; null: the caller of sudo, else
    ``nobody``. The limits apply to the server only, to all its processes together: ``cpu_quota`` in CPUs,
    such as 0.5, also bounds how many CPUs it gets; ``memory_bytes`` without swap; ``pids`` counts threads.
    Reports name each limit that the kind of sandbox cannot enforce.
    """

    kind: Literal["process", "cgroup", "container"] = "process"
    network: Literal["isolated", "host"] = "isolated"
    share_cpus: bool = False
    run_as: str | None = None
    cpu_quota: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The CPUs of server and generator; disjoint unless ``shared``."""

    server_cpus: tuple[int, ...]
    generator_cpus: tuple[int, ...]
    shared: bool = False

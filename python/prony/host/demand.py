"""What a measurement needs of a machine, in numbers.

Must not know plans: the caller counts.

>>> Demand(connections=30_000, engine_threads=2).connections_per_thread
15000
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that any of the trials needs.

    ``connections_per_process``: connections of one server process if they spread evenly, by subject; for a
    subject that is absent: all of them. ``new_per_s``: new connections per second; null: as many as the
    server accepts; 0: all are kept. ``load_s``: the length of the longest load. ``backlogs``: the length of
    the queue that each subject asks the kernel for. ``processes``: of the server, frontend and services.
    ``several_sources``: the generator takes further source addresses when one has no more ports.
    ``memory_bytes``: the server's limit; null: not set. ``own_network``: each trial has a network of its own,
    with its own ports. ``archive``: its folder and approximate size; null: none is written.
    """

    connections: int = 1000
    engine_threads: int = 1
    several_sources: bool = True
    share_cpus: bool = False
    connections_per_process: Mapping[str, int] = field(default_factory=dict)
    new_per_s: float | None = 0.0
    load_s: float = 60.0
    backlogs: Mapping[str, int] = field(default_factory=dict)
    processes: int = 1
    memory_bytes: int | None = None
    own_network: bool = True
    archive: tuple[Path, int] | None = None

    @property
    def connections_per_thread(self) -> int:
        """How many connections each thread of the generator holds."""
        return -(-self.connections // self.engine_threads)

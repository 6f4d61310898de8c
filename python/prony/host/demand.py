"""What a measurement asks of a machine, in numbers.

Must not know plans: whoever has one counts.

>>> Demand(connections=30_000, engine_threads=2).connections_per_thread
15000
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Demand"]


@dataclass(frozen=True, slots=True)
class Demand:
    """The most that any of the trials asks for.

    ``connections_per_process``: those of one server process where they spread evenly, by subject; a subject
    that is not there: all. ``new_per_s``: connections opened a second that are not kept; null: as many as the
    server takes; 0: all are kept. ``load_s``: the length of the longest load. ``backlogs``: the length of the
    queue that each subject asks the kernel for. ``processes``: of the server and what stands beside it.
    ``memory_bytes``: the server's limit; null: none is set. ``own_network``: the trials have a network of
    their own, with its ports. ``archive``: its folder and about how large it gets; null: none is written.
    """

    connections: int = 1000
    engine_threads: int = 1
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

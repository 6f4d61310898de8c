"""What a generator itself uses: CPU and memory of its processes over the window, read like the subject's.

Must not know which generator it is.

>>> usage_of((), 1 << 30).cpu_percent is None
True
"""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from prony.analysis.missing import Missing
from prony.analysis.resources import cpu_share, window_samples
from prony.model.launch import RoleRule
from prony.model.observation import Phase, Sample
from prony.model.recording import GeneratorProcesses
from prony.model.sandbox import Placement
from prony.model.shapes import Json
from prony.monitor.native import CompiledSource
from prony.monitor.processes import ProcessMonitor

_ROLE = "generator"


class GeneratorWatch:
    """Samples the processes of a generator twice a second: ``pid`` and its descendants. A context manager.

    ``with_root``: whether the process ``pid`` itself is the generator, or only starts it.
    """

    def __init__(self, pid: int, cpus: Sequence[int], with_root: bool) -> None:
        source = CompiledSource(pid, with_root)
        rules = (RoleRule(_ROLE), RoleRule(_ROLE, "child"))
        self._monitor = ProcessMonitor(source, {pid: rules}, _on(cpus))

    def note(self, event: Json) -> None:
        """Follow the phases of a run by its events."""
        match event["event"]:
            case "started":
                self._monitor.enter(Phase.WARMUP)
            case "window_open":
                self._monitor.open_window()
            case "window_close":
                self._monitor.close_window()

    def summary(self) -> GeneratorProcesses:
        """Return the figures of the window."""
        return usage_of(self._monitor.samples(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))

    def __enter__(self) -> Self:
        """Start."""
        self._monitor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self._monitor.stop()


def usage_of(samples: Sequence[Sample], memory_bytes: int) -> GeneratorProcesses:
    """Return CPU and memory of all processes in ``samples`` over the window; null: too few samples.

    *Definition*: ``cpu_percent``: as of a subject, 100 = one core. ``rss_mean_bytes``: the mean over the
    samples of the sum over the processes; ``memory_ratio``: that / ``memory_bytes``, the machine's.
    *Assumptions*: pages that processes share count in each of them; ``pss_end_bytes`` divides them.
    """
    window = window_samples(samples)
    cores = cpu_share(window)
    sums = [sum(process.rss_bytes for process in sample.processes) for sample in window]
    mean = sum(sums) / len(sums) if sums else None
    return GeneratorProcesses(
        samples=len(window),
        cpu_percent=None if isinstance(cores, Missing) else 100 * cores,
        rss_mean_bytes=mean,
        rss_peak_bytes=max(sums, default=None),
        pss_end_bytes=_pss(window),
        memory_ratio=None if mean is None else mean / memory_bytes,
        processes_max=max((len(sample.processes) for sample in window), default=None),
        threads_max=max((sum(row.threads for row in sample.processes) for sample in window), default=None),
    )


def _pss(window: Sequence[Sample]) -> int | None:
    known = [row.pss_bytes for row in window[-1].processes] if window else []
    return sum(value or 0 for value in known) if known and None not in known else None


def _on(cpus: Sequence[int]) -> Placement:
    return Placement(server_cpus=(), generator_cpus=tuple(cpus))

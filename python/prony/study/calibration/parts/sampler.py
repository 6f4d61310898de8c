"""What sampling a server's processes costs: the CPU time of one sample of fifty processes.

The processes do nothing, so that only the sampling is timed.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import fmean, stdev

from prony.core.errors import HostError
from prony.core.units import seconds
from prony.figures.statistics.effects import student_t
from prony.model.launch import RoleRule
from prony.model.sandbox import Placement
from prony.sandbox.watch.native import CompiledSource
from prony.sandbox.watch.processes import ProcessMonitor
from prony.study import StudyListener
from prony.study.calibration.bench import CalibrationBench
from prony.study.calibration.result import PartFigure, PartResult

PROCESSES = 50
SAMPLES_PER_S = 2
"""How often a study samples."""
_EACH = f"sampling {PROCESSES} processes"
_SHARE = f"sampling {PROCESSES} at {SAMPLES_PER_S} Hz, of a core"
# The pause between two samples: without it caches would be warmer than in a study.
_PAUSE_S = 0.1
# The first sample also reads what is read only once for each process.
_FIRST = 2
# Each ends when its input is closed, and so with Prony, however Prony ends.
_IDLE = """
import os, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        os.close(1)
        break
else:
    os.write(1, b".")
os.read(0, 1)
"""


def time_sampler(bench: CalibrationBench, listener: StudyListener, seed: int) -> PartResult:
    """Return the CPU time of a sample, and the share of one core that a study's monitor uses."""
    del seed
    listener.notice(f"timing {bench.effort.samples} samples of {PROCESSES} processes")
    costs_ns = sample_costs(PROCESSES, bench.effort.samples, bench.placement)
    each = with_interval(_EACH, "duration", costs_ns)
    shares = [seconds(cost_ns * SAMPLES_PER_S) for cost_ns in costs_ns]
    return PartResult(
        "What sampling processes costs",
        figures=(each, with_interval(_SHARE, "ratio", shares)),
    )


def sample_costs(processes: int, samples: int, placement: Placement) -> list[int]:
    """Return the CPU time in ns that each sample cost its thread.

    *Errors*: HostError when the processes cannot be started.
    """
    with _idle(processes) as root_pid:
        monitor = ProcessMonitor(
            CompiledSource(root_pid), {root_pid: (RoleRule("server", "child"),)}, placement
        )
        found = [_timed(monitor) for _ in range(_FIRST + samples)]
        seen = len(monitor.samples()[-1].processes)
    if seen != processes:
        raise HostError(f"started {processes} processes to sample, but the sampler saw {seen}")
    return found[_FIRST:]


def _timed(monitor: ProcessMonitor) -> int:
    time.sleep(_PAUSE_S)
    began_ns = time.thread_time_ns()
    monitor.sample()
    return time.thread_time_ns() - began_ns


@contextlib.contextmanager
def _idle(processes: int) -> Iterator[int]:
    """Within the block, run processes that do nothing; yield their ancestor."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _IDLE, str(processes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as root:
        assert root.stdin and root.stdout, "they are pipes"
        root.stdout.read(1)
        yield root.pid


def with_interval(name: str, unit: str, values: Sequence[float]) -> PartFigure:
    """Return the mean of two or more values with its 95 % interval.

    *Definition*: mean -+ t(0.975, n - 1) s / sqrt(n). *Source*: Student, 1908, The Probable Error of a Mean.

    >>> with_interval("x", "ratio", [1.0, 3.0]).value
    2.0
    """
    count, mean = len(values), fmean(values)
    half = student_t(0.975, count - 1) * stdev(values) / sqrt(count)
    return PartFigure(name, unit, mean, mean - half, mean + half, count)

"""The parts of a calibration, each a function of the bench: another question is another module here.

>>> list(PARTS)
['overheads', 'sampler', 'limits', 'engine']

Which limits of a control group hold on this machine: each is set and then exceeded on purpose.
"""

from collections.abc import Callable, Mapping

from prony.sandbox.cgroup.probe import probe_limits, states_without
from prony.study import StudyListener
from prony.study.calibration.bench import CalibrationBench
from prony.study.calibration.parts.engine import judge_engine
from prony.study.calibration.parts.overheads import measure_overheads
from prony.study.calibration.parts.sampler import time_sampler
from prony.study.calibration.result import Holding, PartResult


def try_limits(bench: CalibrationBench, listener: StudyListener, seed: int) -> PartResult:
    """Return how far each limit holds, and the evidence."""
    del seed
    listener.notice("testing each limit of a control group")
    groups = bench.bench.groups
    states = probe_limits(groups.tree) if groups else states_without(bench.no_groups)
    return PartResult(
        "Which limits hold",
        holdings=tuple(Holding(name, state.holding, state.reason) for name, state in states.items()),
    )


PARTS: Mapping[str, Callable[[CalibrationBench, StudyListener, int], PartResult]] = {
    "overheads": measure_overheads,
    "sampler": time_sampler,
    "limits": try_limits,
    "engine": judge_engine,
}
"""Name to function; its arguments are the bench, the listener and the seed of the random order."""

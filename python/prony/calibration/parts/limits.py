"""Which limits of a control group hold on this machine: each is set and then exceeded on purpose."""

from prony.calibration.bench import CalibrationBench
from prony.calibration.result import Holding, PartResult
from prony.sandbox.cgroup.probe import probe_limits, states_without
from prony.study import StudyListener


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

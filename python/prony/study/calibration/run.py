"""Calibrates this machine: opens the bench, runs every part, and returns what was found.

Each part is a function of the bench: another question is another one in `PARTS`.

>>> list(PARTS)
['overheads', 'sampler', 'limits', 'engine']
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from prony.catalog.schema.loader import load_catalog
from prony.core.errors import HostError
from prony.core.users import RunAs
from prony.core.version import prony_version
from prony.figures.drift import machine_key
from prony.machine.activity import watch_machine
from prony.machine.claim import claim_machine
from prony.machine.cpus import available_cpus
from prony.machine.fingerprint import fingerprint
from prony.machine.preflight import Demand, preflight
from prony.model.sandbox import SandboxChoice, SandboxKind
from prony.report.words import machine_words
from prony.sandbox.cgroup.probe import probe_limits, states_without
from prony.sandbox.groups import Groups, open_groups
from prony.sandbox.journal import open_run
from prony.sandbox.placement import place
from prony.sandbox.remains import clear_and_report
from prony.study import StudyListener
from prony.study.calibration import Calibration, Holding, PartResult
from prony.study.calibration.bench import USUAL, CalibrationBench, Effort, open_bench
from prony.study.calibration.engine import judge_engine
from prony.study.calibration.overheads import measure_overheads, time_sampler


@dataclass(frozen=True, slots=True)
class Commission:
    """What to calibrate: for which user, how thoroughly, in which random order."""

    user: RunAs
    effort: Effort = USUAL
    seed: int = 1
    share_cpus: bool = False


def run_calibration(order: Commission, listener: StudyListener) -> Calibration:
    """Run every part and return the result; nothing is stored.

    *Errors*: HostError when another Prony measures on this machine or there are too few CPUs; SubjectError
    when the reference server is unavailable. KeyboardInterrupt is raised after everything is stopped.
    """
    with claim_machine() as claim:
        clear_and_report(order.user, listener.notice)
        for words in claim:
            listener.notice(words)
        with _groups() as (groups, no_groups):
            return _calibrate(order, listener, groups, no_groups)


def _calibrate(
    order: Commission, listener: StudyListener, groups: Groups | None, no_groups: str
) -> Calibration:
    placement = place(available_cpus(), order.share_cpus)
    seen = watch_machine()
    for check in preflight(Demand(order.effort.connections, share_cpus=order.share_cpus), seen):
        if check.level != "ok":
            listener.notice(check.in_words())
    facts = fingerprint(seen=seen)
    with open_run(order.user) as run:
        bench = open_bench(load_catalog(), order.user, run, placement, order.effort, listener.environment)
        bench = replace(bench, bench=replace(bench.bench, groups=groups), no_groups=no_groups)
        parts = {name: _part(name, bench, listener, order.seed) for name in PARTS}
    return Calibration(
        key=machine_key(facts),
        machine=str(machine_words(facts)),
        prony_version=prony_version(),
        made_unix_s=int(time.time()),
        effort=order.effort.in_words(),
        parts=parts,
    )


def _part(name: str, bench: CalibrationBench, listener: StudyListener, seed: int) -> PartResult:
    """Return the result of a part, or why it failed: the other parts are kept."""
    try:
        return PARTS[name](bench, listener, seed)
    except HostError as error:
        return PartResult(f"Not measured: {name}", missing={name: error.message})


@contextlib.contextmanager
def _groups() -> Iterator[tuple[Groups | None, str]]:
    """Open control groups within the block; yield them, or the reason why there are none."""
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(open_groups(SandboxChoice(kind=SandboxKind.CGROUP)))
        except HostError as error:
            yield None, error.message
        else:
            yield found, ""


def try_limits(bench: CalibrationBench, listener: StudyListener, seed: int) -> PartResult:
    """Return how far each limit of a control group holds on this machine, and the evidence: each is set
    and then exceeded on purpose.
    """
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

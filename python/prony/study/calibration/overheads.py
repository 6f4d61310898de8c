"""What Prony itself costs: each of what watches and confines a server, and one sample of its processes.

What the monitors, a network namespace and a control group cost: the same load with and without each.

Randomised complete blocks: every setup once in each block, so that a drift of the machine affects all setups
alike.

*Source*: the estimate and its interval: `prony.figures.statistics.compare`.

What sampling a server's processes costs: the CPU time of one sample of fifty processes.

The processes do nothing, so that only the sampling is timed.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from random import Random
from statistics import fmean, stdev

from prony.core.errors import HostError
from prony.core.units import seconds
from prony.figures.account import QUALIFIED_ERROR_RATIO
from prony.figures.statistics.compare import Comparison, compare_family
from prony.figures.statistics.effects import student_t
from prony.figures.trial_metrics import trial_metrics
from prony.figures.validity import in_words
from prony.model.launch import RoleRule
from prony.model.sandbox import Network, Placement, SandboxChoice, SandboxKind
from prony.model.trial import Failed, Invalid, Ok, Trial
from prony.sandbox import describe
from prony.sandbox.watch.native import CompiledSource
from prony.sandbox.watch.processes import ProcessMonitor
from prony.study import StudyListener
from prony.study.calibration import Change, PartFigure, PartResult
from prony.study.calibration.bench import CalibrationBench

METRICS = ("ok_per_s", "service_ok_p99")
"""What is compared: the throughput, and the 99th percentile."""


@dataclass(frozen=True, slots=True)
class Setup:
    """One setup of the reference server. ``is_watched``: monitors run meanwhile."""

    words: str
    sandbox: SandboxChoice
    is_watched: bool = True


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two setups that differ in one thing, ``name``: ``having`` has it, ``without`` does not."""

    name: str
    having: str
    without: str


def setups(own_network: bool, groups: bool) -> dict[str, Setup]:
    """Return the setups that this machine offers; the first is a bare process."""
    host, own = SandboxChoice(network=Network.HOST), SandboxChoice(network=Network.ISOLATED)
    usual = own if own_network else host
    found = {"bare": Setup("a bare process", host)}
    if own_network:
        found["namespace"] = Setup("in a network namespace", own)
    if groups:
        kind = SandboxChoice(kind=SandboxKind.CGROUP, network=usual.network)
        found["group"] = Setup("in a control group", kind)
    return {**found, "unwatched": Setup("not watched", usual, is_watched=False)}


def contrasts(names: Iterable[str]) -> tuple[Contrast, ...]:
    """Return the contrasts that these setups allow."""
    known = set(names)
    usual = "namespace" if "namespace" in known else "bare"
    wanted = (
        Contrast("the monitors", usual, "unwatched"),
        Contrast("a network namespace", "namespace", "bare"),
        Contrast("a control group", "group", usual),
    )
    return tuple(one for one in wanted if {one.having, one.without} <= known)


def measure_overheads(bench: CalibrationBench, listener: StudyListener, seed: int) -> PartResult:
    """Measure every setup in every block, and return what each difference costs."""
    facts = describe(SandboxChoice(network=Network.ISOLATED), bench.bench.user)
    own_network = facts.network is Network.ISOLATED
    found = setups(own_network, bench.bench.groups is not None)
    trials = _measured(bench, found, listener, seed)
    missing = {} if own_network else {"a network namespace": facts.missing["network namespace"]}
    return PartResult(
        "What Prony's own parts cost",
        changes=measured_changes(
            {name: [figures_of(trial) for trial in of] for name, of in trials.items()},
            {name: setup.words for name, setup in found.items()},
        ),
        missing={**missing, **({} if bench.bench.groups else {"a control group": bench.no_groups})},
        notes=lost(trials, {name: setup.words for name, setup in found.items()}),
    )


def _measured(
    bench: CalibrationBench, found: Mapping[str, Setup], listener: StudyListener, seed: int
) -> dict[str, list[Trial]]:
    cells = {
        name: bench.cell(number, setup.words, setup.sandbox)
        for number, (name, setup) in enumerate(found.items())
    }
    trials: dict[str, list[Trial]] = {name: [] for name in found}
    listener.planned(len(found) * bench.effort.blocks)
    for block in range(bench.effort.blocks):
        for name in shuffled(found, seed, block):
            cell = cells[name]
            listener.trial_started(cell, block, bench.effort.blocks)
            on_event = partial(listener.trial_event, cell)
            trial = bench.measure(cell, block, on_event, is_watched=found[name].is_watched)
            listener.trial_ended(cell, trial)
            trials[name].append(trial)
    return trials


def shuffled(names: Iterable[str], seed: int, block: int) -> list[str]:
    """Return the names in the random order of a block: the same for the same seed."""
    order = list(names)
    Random(f"{seed}:calibrate:{block}").shuffle(order)  # noqa: S311 - an experiment's order, not a secret
    return order


def figures_of(trial: Trial) -> dict[str, float | None]:
    """Return the compared figures of one trial; None where one is missing or the trial does not count."""
    found = trial_metrics(trial) if isinstance(trial.outcome, Ok) else {}
    failed = found.get("error_ratio")
    counts = isinstance(failed, float) and failed <= QUALIFIED_ERROR_RATIO
    values = {metric: found.get(metric) for metric in METRICS}
    return {
        metric: value if counts and isinstance(value, float) and value > 0 else None
        for metric, value in values.items()
    }


def measured_changes(
    figures: Mapping[str, Sequence[Mapping[str, float | None]]], words: Mapping[str, str]
) -> tuple[Change, ...]:
    """Return every contrast in every metric, from the figures of each setup by block.

    *Definition*: the log ratio in each block in which both count; one family over all contrasts and metrics,
    with Holm's levels.
    """
    wanted = {
        (one, metric): _ratios(figures, one, metric) for one in contrasts(figures) for metric in METRICS
    }
    compared = compare_family(wanted)
    return tuple(_change(one, metric, words, found) for (one, metric), found in compared.items())


def _ratios(
    figures: Mapping[str, Sequence[Mapping[str, float | None]]], contrast: Contrast, metric: str
) -> list[float]:
    pairs = zip(figures[contrast.having], figures[contrast.without], strict=True)
    found = [(having[metric], without[metric]) for having, without in pairs]
    return [log(having / without) for having, without in found if having is not None and without is not None]


def _change(contrast: Contrast, metric: str, words: Mapping[str, str], found: Comparison) -> Change:
    return Change(
        name=contrast.name,
        against=words[contrast.without],
        metric=metric,
        blocks=found.blocks,
        effect=found.effect,
        low=found.low,
        high=found.high,
        level=found.level,
        method=found.method,
        verdict=found.verdict.value,
    )


def lost(trials: Mapping[str, Sequence[Trial]], words: Mapping[str, str]) -> tuple[str, ...]:
    """Return in words which trials do not count, and how many were disturbed."""
    notes = [_why_lost(words[name], of) for name, of in trials.items()]
    known = [trial.fault for of in trials.values() for trial in of]
    disturbed = [in_words(fault) for fault in known if fault and fault.kind.is_of_environment]
    if disturbed:
        notes.append(f"{len(disturbed)} of {len(known)} trials were disturbed: {disturbed[0]}")
    return tuple(note for note in notes if note)


def _why_lost(setup: str, trials: Sequence[Trial]) -> str:
    reasons = [_reason(trial) for trial in trials if None in figures_of(trial).values()]
    return f"{len(reasons)} of {len(trials)} trials {setup} do not count: {reasons[0]}" if reasons else ""


def _reason(trial: Trial) -> str:
    match trial.outcome:
        case Failed(stage, reason):
            return f"failed at {stage}: {reason}"
        case Invalid(reason):
            return reason
        case Ok():
            return "requests failed, or too few were answered"


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

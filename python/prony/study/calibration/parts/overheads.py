"""What the monitors, a network namespace and a control group cost: the same load with and without each.

Randomised complete blocks: every setup once in each block, so that a drift of the machine affects all setups
alike.

*Source*: the estimate and its interval: `prony.figures.statistics.compare`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from random import Random

from prony.figures.account import QUALIFIED_ERROR_RATIO
from prony.figures.statistics.compare import Comparison, compare_family
from prony.figures.trial_metrics import trial_metrics
from prony.figures.validity import in_words
from prony.model.sandbox import Network, SandboxChoice, SandboxKind
from prony.model.trial import Failed, Invalid, Ok, Trial
from prony.sandbox import describe
from prony.study import StudyListener
from prony.study.calibration.bench import CalibrationBench
from prony.study.calibration.result import Change, PartResult

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

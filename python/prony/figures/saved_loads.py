"""Loads that were saved (``prony load --json``), compared as two cells whose trials are these runs.

*Definition*: with two runs of each side or more as `versus.compared_loads` of two archives: Welch's test on
the logarithms of the runs' figures. With one, the ratio of both, and an interval from the seconds within the
loads, which holds nothing of what differs from run to run: there is no verdict. *Assumptions*: the loads were
the same (`differing_loads`). The effect includes what the machine did between them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import variance

from prony.core.metrics import PERCENTILES
from prony.core.units import SECOND_NS
from prony.figures.load_pairs import resemblance
from prony.figures.missing import Value
from prony.figures.rates import is_speed
from prony.figures.statistics.compare import LEAST_BLOCKS, Comparison, Terms, Verdict, compare_effects
from prony.figures.statistics.effects import Effect, change_of
from prony.figures.summary import CellSummary, TrialFigures, figures, summarise_cell
from prony.figures.versus import (
    UNPAIRED,
    ComparedFigure,
    ComparedLoad,
    Family,
    Match,
    SavedRuns,
    SavedSide,
    Versus,
    compared_loads,
    then_of,
)
from prony.model.json_codec import ShapeError, decode
from prony.model.limit import Limited
from prony.model.plan import Cell
from prony.model.recording import Recording, Specification, Target
from prony.model.subject import App, Interface, Subject
from prony.model.trial import Ok, Trial, TrialRole
from prony.model.workload import EngineChoice, Workload

_METHOD = "Welch on logarithms of the seconds within the loads"
_THEN = "`prony load A --compare B`, where both take turns, or a folder of five saved loads of each side"


@dataclass(frozen=True, slots=True)
class SavedTimes:
    """The summary of a distribution, as a load's JSON has it. *Units*: nanoseconds."""

    mean: float | None
    percentiles: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class SavedSecond:
    """One second of a saved load: its valid replies, and their times."""

    second: int
    ok: int
    latency: SavedTimes | None


@dataclass(frozen=True, slots=True)
class SavedSummaries:
    """What a load's JSON has beside the account, in place of distributions."""

    target: Target
    workload: Workload
    latency: Mapping[str, Mapping[str, SavedTimes | None]]
    series: tuple[SavedSecond, ...]


@dataclass(frozen=True, slots=True)
class SavedLoad:
    """What of a load's JSON is compared; its ``recording`` has no distributions and no seconds."""

    recording: Recording
    summaries: SavedSummaries

    @property
    def kind(self) -> str:
        """The kind of time that its seconds have."""
        return "response" if self.recording.is_open else "service"

    def whole_seconds(self) -> tuple[SavedSecond, ...]:
        """Return the seconds that lie in the window in full."""
        length_ns = self.recording.window.length_ns or 0
        return tuple(one for one in self.summaries.series if (one.second + 1) * SECOND_NS <= length_ns)


@dataclass(frozen=True, slots=True)
class SavedLoads:
    """The saved loads of one side, by their names."""

    name: str
    loads: Mapping[str, SavedLoad]


def decode_saved_load(value: object) -> SavedLoad:
    """Return the load that ``prony load --json`` wrote.

    *Errors*: ShapeError, which names the place.
    """
    if not isinstance(value, dict) or value.get("version") != 1:
        raise ShapeError("1, of a load that `prony load --json` wrote", None, "load", "version")
    counted = {name: value[name] for name in _COUNTED if name in value}
    nothing: dict[str, object] = {
        "format": 1,
        "spec": None,
        "distributions": {},
        "series": [],
        "error_samples": [],
    }
    recording = decode(Recording, {**counted, **nothing}, "load")
    summaries, engine = decode(SavedSummaries, value, "load"), recording.engine
    spec = Specification(summaries.target, summaries.workload, engine.threads, None, engine.pacing)
    return SavedLoad(replace(recording, spec=spec), summaries)


_COUNTED = (
    *("engine", "loop", "window", "account", "completed", "connections", "bytes", "queue"),
    *("generator", "little"),
)


# --- whether they may be compared -------------------------------------------------------------------------


def differing_loads(first: SavedLoad, second: SavedLoad) -> tuple[str, ...]:
    """Return in which parts of the load and of the engine two saved loads differ, in words."""
    own, other = _parts(first), _parts(second)
    found = (_words(name, own[name], other[name]) for name in own if own[name] != other[name])
    return (*found, *("one was interrupted" for one in (first, second) if one.recording.window.interrupted))


def _words(name: str, own: object, other: object) -> str:
    shown = isinstance(own, str) and isinstance(other, str)
    return f"{name}: {own} and {other}" if shown else f"the {name}"


def _parts(one: SavedLoad) -> Mapping[str, object]:
    """Return what must be the same; of text both are shown."""
    load, target, own = one.summaries.workload, one.summaries.target, one.recording.engine
    engine = " ".join(part for part in (own.name, own.version) if part)
    return {
        "load": replace(load, mix=None).describe(),
        "stages": load.loop,
        "engine": engine,
        "threads": str(own.threads),
        "pacing": str(own.pacing),
        "protocol": (target.wire, target.tls, target.socket),
        "warm-up": load.warmup_ns,
        "time-outs": (load.timeout_ns, load.connect_timeout_ns, load.grace_ns),
        "request": (load.request, load.mix),
        "groups of users": load.groups,
        "check of replies": (load.expect_status, load.expect_statuses, load.expect_headers),
        "check of bodies": (load.expect_body, load.expect_body_contains, load.expect_body_sha256),
    }


# --- the comparison ---------------------------------------------------------------------------------------


def compare_saved_loads(first: SavedLoads, second: SavedLoads, forced: Sequence[str] = ()) -> Versus:
    """Return how the second side compares with the first. ``forced``: differing_loads that were accepted."""
    sides = first, second
    match = Match(*map(_cell, sides))
    loads = tuple(_of_runs(one) for one in compared_loads([match], False, Terms()))
    if min(len(side.loads) for side in sides) < 2:
        loads = tuple(_within(one, match, sides) for one in loads)
    return Versus(
        first=first.name,
        second=second.name,
        paired=False,
        by_session=False,
        remark=UNPAIRED,
        forced=tuple(forced),
        loads=loads,
        runs=SavedRuns(_side(first), _side(second)),
        then=then_of(loads, _THEN),
    )


def _side(side: SavedLoads) -> SavedSide:
    found = [_figures(one, 0) for one in side.loads.values()]
    return SavedSide(
        tuple(side.loads),
        requests=sum(one.account.requests for one in found),
        errors=sum(one.account.lost for one in found),
        limited=sum(one.limited is not None and one.limited.level is not Limited.NO for one in found),
    )


def _cell(side: SavedLoads) -> CellSummary:
    """Return the loads of a side as the trials of a cell."""
    own = next(iter(side.loads.values()))
    subject = Subject(side.name, "", App("", "", "", {}), Interface.NONE)
    engine = EngineChoice(threads=own.recording.engine.threads or 1)
    trials = [_figures(one, place) for place, one in enumerate(side.loads.values())]
    return summarise_cell(Cell(0, subject, own.summaries.workload, engine), trials)


def _figures(one: SavedLoad, block: int) -> TrialFigures:
    """Return the figures of a run; its times are those that its JSON has, not a histogram's."""
    trial = Trial(0, block, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, recording=one.recording)
    found = figures(trial)
    return replace(found, metrics={**found.metrics, **_times(one)})


def _times(one: SavedLoad) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for kind in ("response", "service"):
        times = one.summaries.latency.get("ok", {}).get(f"{kind}_ns")
        if times is not None:
            found |= {f"{kind}_ok_{name}": value for name, value in _by_suffix(times)}
    return found


def _by_suffix(times: SavedTimes) -> Iterator[tuple[str, float]]:
    named = {"mean": times.mean, **{name: times.percentiles.get(p) for name, p in PERCENTILES.items()}}
    yield from ((name, float(value)) for name, value in named.items() if value is not None)


# --- one run of a side ------------------------------------------------------------------------------------


def _of_runs(load: ComparedLoad) -> ComparedLoad:
    """Return a comparison that speaks of runs where it has too few."""
    metrics = {name: replace(one, comparison=_few(one.comparison)) for name, one in load.metrics.items()}
    return replace(load, metrics=metrics)


def _few(found: Comparison | None) -> Comparison | None:
    is_few = found is not None and found.verdict is Verdict.TOO_FEW
    return replace(found, verdict=Verdict.TOO_FEW_RUNS) if found is not None and is_few else found


def _within(load: ComparedLoad, match: Match, sides: Sequence[SavedLoads]) -> ComparedLoad:
    """Return the comparison with intervals of the seconds within the loads, where they have them."""
    lost = match.first.unqualified or match.second.unqualified
    found: dict[str, Comparison] = {}
    for family in Family:
        own = [
            name
            for name, one in load.metrics.items()
            if one.family is family and one.first and one.second and not (lost and is_speed(name))
        ]
        effects = {name: one for name in own if (one := _effect(load.metrics[name], name, sides)) is not None}
        found |= {name: _alone(load.metrics[name], sides) for name in own if name not in effects}
        found |= compare_effects(effects, Terms(screens=family is Family.SCREENING))
    metrics = {
        name: replace(one, comparison=_few(found[name]), reason=None) if name in found else one
        for name, one in load.metrics.items()
    }
    return replace(load, metrics=metrics)


def _runs(sides: Sequence[SavedLoads]) -> int:
    return min(len(side.loads) for side in sides)


def _alone(figure: ComparedFigure, sides: Sequence[SavedLoads]) -> Comparison:
    change = change_of(_log_ratio(figure))
    return Comparison(
        _runs(sides), change, None, None, Terms().level, None, "no interval: too few seconds", Verdict.TOO_FEW
    )


def _log_ratio(figure: ComparedFigure) -> float:
    return log(figure.second or 1) - log(figure.first or 1)


def _effect(figure: ComparedFigure, metric: str, sides: Sequence[SavedLoads]) -> Effect | None:
    """Return the effect with the error that the seconds show; None where a side has fewer than five.

    *Definition*: the ratio of the loads' own figures; the square of its error is the sum over both sides of
    s^2 w^2 / n, with s of the logarithms of its n seconds, and w the widening of `load_pairs.resemblance`
    for seconds that resemble their neighbours; degrees of freedom by Welch and Satterthwaite.
    """
    squares: list[tuple[float, int]] = []
    for side in sides:
        logs = _by_second(side, metric)
        alike = resemblance(logs)
        if alike is None:
            return None
        squares.append((variance(logs) / len(logs) * alike.widening**2, len(logs)))
    whole = sum(square for square, _ in squares)
    parts = sum(square**2 / (count - 1) for square, count in squares)
    freedom = whole**2 / parts if parts > 0 else float(sum(count for _, count in squares) - 2)
    return Effect(_runs(sides), _log_ratio(figure), whole**0.5, freedom, _METHOD)


def _by_second(side: SavedLoads, metric: str) -> list[float]:
    """Return the logarithms of a figure in each whole second; none where one second does not have it."""
    found = [_in_second(load, one, metric) for load in side.loads.values() for one in load.whole_seconds()]
    return [log(value) for value in found if value] if all(found) and len(found) >= LEAST_BLOCKS else []


def _in_second(load: SavedLoad, second: SavedSecond, metric: str) -> float | None:
    if metric == "ok_per_s":
        return float(second.ok)
    kind, _, suffix = metric.partition("_ok_")
    if kind != load.kind or second.latency is None:
        return None
    return dict(_by_suffix(second.latency)).get(suffix)

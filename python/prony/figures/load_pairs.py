"""Two loads in alternating windows, as two cells whose blocks are pairs: what the machine does cancels out.

*Definition*: as `versus.compared_loads`, with standard errors that allow for pairs which resemble their
neighbours.
*Assumptions*: a pair is short against what drifts, and its order is random; windows are long enough for the
percentile. Both sides had the same load. The state of one side may last for several windows; if it lasts as
long as the whole comparison, no interval shows it.

Loads that were saved (``prony load --json``), compared as two cells whose trials are these runs.

*Definition*: with two runs of each side or more as `versus.compared_loads` of two archives: Welch's test on
the logarithms of the runs' figures. With one, the ratio of both, and an interval from the seconds within the
loads, which holds nothing of what differs from run to run: there is no verdict. *Assumptions*: the loads were
the same (`differing_loads`). The effect includes what the machine did between them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isnan, log
from statistics import variance

from prony.core.metrics import PERCENTILES
from prony.core.units import SECOND_NS
from prony.figures.answer import deciding_metrics, log_ratios
from prony.figures.missing import Value
from prony.figures.statistics.compare import LEAST_BLOCKS, Terms, Verdict
from prony.figures.statistics.effects import Effect, of_mean, shown_by
from prony.figures.summary import CellSummary, TrialFigures, figures, means, summarise_cell
from prony.figures.versus import (
    METRICS_COMPARED,
    Match,
    Resemblance,
    SideTotals,
    Versus,
    Windows,
    compared_loads,
    of_blocks,
    then_of,
)
from prony.model.address import Address
from prony.model.json_codec import ShapeError, decode
from prony.model.limit import Limited
from prony.model.plan import Cell
from prony.model.recording import Recording, Specification, Target
from prony.model.subject import App, Interface, Subject
from prony.model.trial import Ok, Trial, TrialRole
from prony.model.workload import EngineChoice, Workload

# Found by simulation: with it, intervals miss in at most 5 % of comparisons at a correlation of 0.5, and in
# at most 10 % at 0.8, of 5 pairs and of 100. It stands for what few pairs cannot show.
_MARGIN = 4.0
_MOST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class LoadPair:
    """One window of each side; ``second_began``: the second side had the first window."""

    first: Recording
    second: Recording
    second_began: bool


@dataclass(frozen=True, slots=True)
class LoadSide:
    """One of two loads: as typed, and in full."""

    url: str
    workload: Workload
    address: Address


@dataclass(frozen=True, slots=True)
class PairedLoads:
    """Two loads to compare, in ``pairs`` of windows whose order the seed sets."""

    first: LoadSide
    second: LoadSide
    pairs: int
    seed: int


def compare_load_pairs(asked: PairedLoads, pairs: Sequence[LoadPair], dropped: int = 0) -> Versus:
    """Return how the second side compares with the first. ``dropped``: as of `versus.Windows`.

    *Definition*: made for the metric that decides; in an open loop for the first of p99, p95 and p50 that
    five pairs have: whether they have it depends on their length alone.
    """
    both = (asked.first, [pair.first for pair in pairs]), (asked.second, [pair.second for pair in pairs])
    cells = (
        cell_of(side.url, side.workload, [run_figures(one, pair) for pair, one in enumerate(windows)])
        for side, windows in both
    )
    match = Match(*cells)
    sides = match.first, match.second
    effect_of = partial(of_blocks, widening=_widening)
    loads = compared_loads([match], True, Terms(), tuple(_made_for(match)), effect_of)
    alike = {name: resemblance(log_ratios(*sides, name)) for name in METRICS_COMPARED}
    known = {name: one for name, one in alike.items() if one is not None}
    return Versus(
        first=asked.first.url,
        second=asked.second.url,
        paired=True,
        loads=loads,
        sides=tuple(totals(side.counted) for side in sides),
        windows=Windows(asked.seed, asked.pairs, len(pairs), dropped, known),
        then=then_of(loads, f"the same command with `--pairs {2 * asked.pairs}`"),
    )


def run_figures(recording: Recording, block: int) -> TrialFigures:
    """Return the figures of a load that is no trial of a study. ``block``: its number, or its pair's."""
    return figures(Trial(0, block, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, recording=recording))


def cell_of(name: str, load: Workload, runs: Iterable[TrialFigures], threads: int = 1) -> CellSummary:
    """Return the loads of a side as the trials of a cell."""
    subject = Subject(name, "", App("", "", "", {}), Interface.NONE)
    return summarise_cell(Cell(0, subject, load, EngineChoice(threads=threads)), runs)


def _made_for(match: Match) -> Iterator[str]:
    for name in deciding_metrics(match.first.cell):
        yield name
        if len(log_ratios(match.first, match.second, name)) >= LEAST_BLOCKS:
            return


def totals(trials: Sequence[TrialFigures], files: Iterable[str] = ()) -> SideTotals:
    """Return all windows, or saved loads, of one side together."""
    return SideTotals(
        requests=sum(one.account.requests for one in trials),
        errors=sum(one.account.lost for one in trials),
        limited=sum(one.limited is not None and one.limited.level is not Limited.NO for one in trials),
        files=tuple(files),
    )


def _widening(ratios: Sequence[float]) -> float | None:
    alike = resemblance(ratios)
    return None if alike is None else alike.widening


def resemblance(ratios: Sequence[float]) -> Resemblance | None:
    """Return how log ratios resemble their neighbours; None below five.

    *Definition*: the correlation is that of `dependence.shown_by`, and the most that is allowed for 4 / n
    more, between 0 and 0.9. The widening is `dependence.of_mean` of that. Windows of one server process
    resemble each other more than blocks of fresh ones, so it is allowed for, and not drawn to what is usual.
    *Assumptions*: the correlation fades as that of a first-order autoregression.
    """
    count = len(ratios)
    if count < LEAST_BLOCKS:
        return None
    shown = float(shown_by([[one] for one in ratios]))
    correlation = 0.0 if isnan(shown) else min(max(shown, -1.0), 1.0)
    most = min(max(correlation + _MARGIN / count, 0.0), _MOST_CORRELATION)
    return Resemblance(correlation, most, float(of_mean(most, count)))


# --- saved loads ------------------------------------------------------------------------------------------


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
    is_alone = min(len(side.loads) for side in sides) < 2
    terms, match = Terms(too_few=Verdict.TOO_FEW_RUNS), Match(*map(_cell, sides))
    loads = compared_loads([match], False, terms, (), partial(_within, sides) if is_alone else None)
    return Versus(
        first=first.name,
        second=second.name,
        paired=False,
        forced=tuple(forced),
        loads=loads,
        sides=(totals(match.first.counted, first.loads), totals(match.second.counted, second.loads)),
        then=then_of(loads, _THEN),
    )


def _cell(side: SavedLoads) -> CellSummary:
    """Return the loads of a side as the trials of a cell."""
    own = next(iter(side.loads.values()))
    runs = [_figures(one, place) for place, one in enumerate(side.loads.values())]
    return cell_of(side.name, own.summaries.workload, runs, own.recording.engine.threads or 1)


def _figures(one: SavedLoad, block: int) -> TrialFigures:
    """Return the figures of a run; its times are those that its JSON has, not a histogram's."""
    found = run_figures(one.recording, block)
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


def _within(sides: Sequence[SavedLoads], match: Match, metric: str) -> Effect:
    """Return the effect with the error that the seconds show; an infinite one where a side has fewer than
    five.

    *Definition*: the ratio of the loads' own figures; the square of its error is the sum over both sides of
    s^2 w^2 / n, with s of the logarithms of its n seconds, and w the widening of `load_pairs.resemblance`
    for seconds that resemble their neighbours; degrees of freedom by Welch and Satterthwaite.
    """
    runs = min(len(side.loads) for side in sides)
    first, second = (log(mean) for mean in means((match.first.known(metric), match.second.known(metric))))
    squares: list[tuple[float, int]] = []
    for side in sides:
        logs = _by_second(side, metric)
        alike = resemblance(logs)
        if alike is None:
            return Effect(runs, second - first, inf, 1.0, "no interval: too few seconds")
        squares.append((variance(logs) / len(logs) * alike.widening**2, len(logs)))
    whole = sum(square for square, _ in squares)
    parts = sum(square**2 / (count - 1) for square, count in squares)
    freedom = whole**2 / parts if parts > 0 else float(sum(count for _, count in squares) - 2)
    return Effect(runs, second - first, whole**0.5, freedom, _METHOD)


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

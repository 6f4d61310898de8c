"""The answer on one screen: what to use, what it gains, what it carries, and which settings did nothing.

Pure. What is said of the gain and of what it carries is from fresh blocks; the table is of the search.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import expm1, floor, inf

from prony.analysis.all_pairs import all_pairs
from prony.analysis.compare import Comparison
from prony.analysis.effects import geometric_mean
from prony.analysis.studentized import pair_level
from prony.analysis.summary import Estimate, estimate_over
from prony.metrics import METRICS
from prony.report.document import (
    Block,
    Column,
    Command,
    Document,
    Entry,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.tune.race import Figures, Move, Recommendation, TuneWish, logs_of
from prony.tune.recipes import Recipe
from prony.tune.space import Candidate
from prony.units import format_bytes, format_duration, format_rate

# The first that all have: a percentile needs ten requests beyond it.
_LATENCIES = {f"{kind}_all_p{p}": f"p{p}" for p in ("99", "95", "50") for kind in ("response", "service")}
_MOST_ROWS = 6
# Differences of less change nobody's mind.
_NOTHING = 0.05


@dataclass(frozen=True, slots=True)
class About:
    """What the answer is of: the load in words, where the incumbent's settings are from, how to start what is
    chosen, what limits it, remarks.
    """

    app: str
    load: str
    origin: str
    start: str
    recipe: Recipe | None
    folder: str
    limits: str = ""
    remarks: tuple[str, ...] = ()


def answer_document(answer: Recommendation, wish: TuneWish, about: About) -> Document:
    """Return the answer as a report."""
    lead = Section("", tuple(_lead(answer, wish, about)))
    parts = (
        ("What else there is, as the search saw it", _front(answer)),
        ("What limits it now", Paragraph(about.limits) if about.limits else None),
        ("What the settings do", _settings(answer, wish)),
    )
    middle = [Section(heading, (block,)) for heading, block in parts if block is not None]
    notes = Section("", (Notes(tuple(("", one) for one in about.remarks)),) if about.remarks else ())
    return Document(f"{about.app}: which settings", (lead, *middle, *_forms(about), notes))


# --- what to use ------------------------------------------------------------------------------------------


def _lead(answer: Recommendation, wish: TuneWish, about: About) -> Iterator[Block]:
    of = f"{answer.incumbent.words} ({about.origin})"
    broken = f" {of} is not shown to meet {', '.join(answer.broken)}." if answer.broken else ""
    gain = _gain(answer, wish)
    other = f" The best other, {answer.challenger.words}: {gain}." if answer.challenger else ""
    match answer.advice:
        case Move.CHANGE:
            yield Paragraph(f"Use {_chosen(answer)}. Over {of}: {gain}.{broken}", Tone.STRONG)
        case Move.KEEP:
            yield Paragraph(f"No gain shown: keep {of}.{other}", Tone.STRONG)
        case Move.NOTHING:
            yield Paragraph(f"Nothing that was tried is shown to meet all of it.{broken}{other}", Tone.STRONG)
    if answer.chosen and about.start:
        yield Command(about.start)
    if carried := _carried(answer, about):
        yield Paragraph(carried)


def _chosen(answer: Recommendation) -> str:
    return answer.chosen.words if answer.chosen else ""


def _gain(answer: Recommendation, wish: TuneWish) -> str:
    """Return how the challenger compares with the incumbent, in words."""
    gain = answer.gain
    if gain is None or gain.effect is None:
        return "one of the two has no trial that counts"
    ends = [_change(one, wish) for one in (gain.low, gain.high) if one is not None]
    change = _change(gain.effect, wish)
    is_large = max(map(abs, (change, *ends))) > 1
    value, *interval = (_times(one) if is_large else f"{100 * one:+.1f} %" for one in (change, *sorted(ends)))
    within = f" (95 % interval {' to '.join(interval)})" if interval else ""
    return f"{_objective(wish)} {value}{within}, in {_pairs(gain)}"


def _times(change: float) -> str:
    """Return a large change as a factor."""
    return f"x {1 + change:.3g}"


def _pairs(gain: Comparison) -> str:
    return f"{gain.blocks} fresh pair{'s' if gain.blocks != 1 else ''} of trials"


def _change(effect: float, wish: TuneWish) -> float:
    """Return a ratio less 1 of the figure itself: the gain counts what is better as more."""
    return effect if wish.higher_is_better else 1 / (1 + effect) - 1


def _objective(wish: TuneWish) -> str:
    return {"ok_per_s": "requests/s", "cpu_ns_per_request": "CPU time a request"}.get(
        wish.metric, METRICS[wish.metric].title
    )


def _carried(answer: Recommendation, about: About) -> str:
    """Return what is chosen, or else the incumbent, carries, from fresh blocks."""
    of = answer.chosen or answer.incumbent
    rows = list(answer.fresh.get(of, {}).values())
    latency = _latency([rows])
    rate, tail, memory = (_estimate(rows, name) for name in ("ok_per_s", latency, "pss_end"))
    if rate is None:
        return ""
    ends = f" ({format_rate(rate.low)} to {format_rate(rate.high)})" if rate.low and rate.high else ""
    who = "It" if answer.chosen else of.words
    parts = [f"{who} carries {format_rate(rate.mean)}{ends}".replace(" /s", "/s")]
    parts += [f"at a {_LATENCIES[latency]} of {format_duration(tail.mean)}"] if tail else []
    parts += [f"in {format_bytes(memory.mean)} of memory"] if memory else []
    return f"{' '.join(parts)}: {about.load}."


def _latency(of_all: Iterable[Sequence[Figures]]) -> str:
    """Return the first latency that each of several has, in all its trials."""
    rows = [row for rows in of_all for row in rows]
    return next(
        (name for name in _LATENCIES if all(row.get(name, inf) < inf for row in rows)), "service_all_p50"
    )


def _estimate(rows: Sequence[Figures], name: str) -> Estimate | None:
    values = [row[name] for row in rows if name in row]
    return estimate_over(values, name) if values else None


# --- what else there is -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeanFigures:
    """A candidate as the search saw it: the means of its trials."""

    candidate: Candidate
    rate: float
    latency_ns: float
    memory_bytes: float

    def is_worse_than(self, other: "MeanFigures") -> bool:
        """Return whether another is at least as good in all three, and better in one."""
        mine = (-self.rate, self.latency_ns, self.memory_bytes)
        its = (-other.rate, other.latency_ns, other.memory_bytes)
        return mine != its and all(b <= a for a, b in zip(mine, its, strict=True))


def front(searched: Mapping[Candidate, Mapping[int, Figures]]) -> tuple[MeanFigures, ...]:
    """Return the candidates that no other beats in rate, latency and memory together, the fastest first."""
    latency = _latency(list(blocks.values()) for blocks in searched.values())
    found = [seen for one, blocks in searched.items() if (seen := _seen(one, list(blocks.values()), latency))]
    best = [one for one in found if not any(one.is_worse_than(other) for other in found)]
    return tuple(sorted(best, key=lambda one: -one.rate))


def _seen(one: Candidate, rows: Sequence[Figures], latency: str) -> MeanFigures | None:
    means = [_mean(rows, name) for name in ("ok_per_s", latency, "pss_end")]
    known = [value for value in means if value is not None]
    return MeanFigures(one, *known) if len(known) == len(means) else None


def _mean(rows: Sequence[Figures], name: str) -> float | None:
    values = [row[name] for row in rows if name in row]
    return geometric_mean(values) if values else None


def _front(answer: Recommendation) -> Table | None:
    rows = front(answer.searched)[:_MOST_ROWS]
    if len(rows) < 2:
        return None
    latency = _LATENCIES[_latency(list(blocks.values()) for blocks in answer.searched.values())]
    columns = (Column("setting", text=True), Column("requests/s"), Column(latency), Column("memory"))
    return Table(
        columns,
        tuple(
            (
                Entry(one.candidate.words),
                Entry(format_rate(one.rate).removesuffix("/s").strip()),
                Entry(format_duration(one.latency_ns)),
                Entry(format_bytes(one.memory_bytes)),
            )
            for one in rows
        ),
    )


# --- what the settings do ---------------------------------------------------------------------------------


def _settings(answer: Recommendation, wish: TuneWish) -> Notes | None:
    lines = [line for knob in ("workers", "threads") if (line := knob_words(answer, wish, knob))]
    return Notes(tuple(("", line) for line in lines)) if lines else None


def knob_words(answer: Recommendation, wish: TuneWish, knob: str) -> str:
    """Return what one setting did on the server that is used, in words; empty where it was not varied alone.

    *Definition*: over all pairs of candidates that differ in nothing else, with intervals that hold together
    (Tukey). It did nothing where all of them lie within 5 %.
    """
    server = (answer.chosen or answer.incumbent).server
    own = {one.words: one for one in answer.searched if one.server == server}
    logs = logs_of(wish, answer.searched, own.values())
    found = []
    for (first, second), effect in all_pairs(logs).items():
        a, b = sorted((own[first], own[second]), key=lambda one: getattr(one, knob) or 0)
        if not _differs_alone(a, b, knob):
            continue
        turned = effect if a.words == first else effect.mirrored()
        low, high = turned.interval(pair_level(0.05, len(logs), max(1, floor(turned.freedom))))
        found.append((a, b, turned.centre, low, high))
    if not found:
        return ""
    shown = [one for one in found if one[3] > 0 or one[4] < 0]
    if not shown:
        values = sorted({getattr(one, knob) for pair in found for one in pair[:2]})
        numbers = ", ".join(map(str, values))
        is_nothing = all(max(-low, high) <= _NOTHING for *_, low, high in found)
        what = "did nothing, to within 5 %" if is_nothing else "no difference is shown"
        return f"{knob} {numbers}: {what}"
    a, b, centre, *_ = max(shown, key=lambda one: abs(one[2]))
    change = _change(expm1(centre), wish)
    by = _times(change) if abs(change) > 1 else f"{100 * change:+.0f} %"
    return f"{knob} {getattr(a, knob)} to {getattr(b, knob)}: {_objective(wish)} {by}{_beside(a, knob)}"


def _differs_alone(one: Candidate, other: Candidate, knob: str) -> bool:
    rest = "threads" if knob == "workers" else "workers"
    return getattr(one, rest) == getattr(other, rest) and None not in (
        getattr(one, knob),
        getattr(other, knob),
    )


def _beside(one: Candidate, knob: str) -> str:
    rest = "threads" if knob == "workers" else "workers"
    count = getattr(one, rest)
    return "" if count is None else f", at {count} {rest if count != 1 else rest[:-1]}"


# --- its other forms --------------------------------------------------------------------------------------


def _forms(about: About) -> Iterator[Section]:
    """Yield the same settings in the forms in which people keep them."""
    if about.recipe is None:
        return
    for name, content in about.recipe.forms(about.folder):
        yield Section(name, (Command(content.rstrip("\n")),))

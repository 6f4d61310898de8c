"""The answer on one screen: what to use, what it gains, what it carries, and which settings did nothing.

Pure: the only place that has these words.

>>> try_verdict(Gain(8, 0.10, 0.08, 0.12))
<TryVerdict.CONFIRMED: 'confirmed'>
>>> try_verdict(Gain(8, 0.06, 0.01, 0.11))
<TryVerdict.OPEN: 'cannot tell'>
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from prony.core.metrics import METRICS
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
from prony.report.forms import (
    Form,
    about_percent,
    byte_size,
    count,
    duration,
    in_metric,
    rate,
    signed_percent,
)
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, counted, each_of, joined, pointer, text
from prony.tune.race import LEAST_GAIN, Gain, Move
from prony.tune.reading import FreshFigures, KnobEffect, RatioChange, TuneReading

_MOST_ROWS = 6


def answer_document(found: TuneReading) -> Document:
    """Return the answer as a report."""
    lead = Section("", tuple(_lead(found)))
    limits = Paragraph(text("{}", Quote(found.limits, "/limits")))
    parts = (
        ("Both in fresh trials", _fresh(found)),
        ("What else there is, as the search saw it", _front(found)),
        ("What limits it now", limits if found.limits else None),
        ("What the settings do", _settings(found)),
        *((name, Command(content.rstrip("\n"))) for name, content in found.forms.items()),
        ("", _remarks(found)),
    )
    sections = (Section(heading, (block,)) for heading, block in parts if block is not None)
    return Document(text("{}: which settings", Name(found.app)), (lead, *sections))


def _remarks(found: TuneReading) -> Notes | None:
    lines = [("", text("{}", Quote(one, pointer("remarks", k)))) for k, one in enumerate(found.remarks)]
    return Notes(tuple(lines)) if lines else None


# --- what to use ------------------------------------------------------------------------------------------


def _lead(found: TuneReading) -> Iterator[Block]:
    yield Paragraph(_advice(found), Tone.STRONG)
    if found.used and found.start:
        yield Command(found.start)
    if carried := _carried(found):
        yield Paragraph(carried)


def _advice(found: TuneReading) -> Text:
    of = text("{} ({})", Quote(found.incumbent, "/incumbent"), Quote(found.origin, "/origin"))
    broken = text(" {} is not shown to meet {}.", of, _named(found, "broken")) if found.broken else EMPTY
    gain = gain_words(found.gain, found.metric, "/gain", Figure(found.pairs, count, "/pairs"))
    challenger = Quote(found.challenger or "", "/challenger")
    unfit = text("; it is not shown to meet {}", _named(found, "unfit")) if found.unfit else EMPTY
    other = text(" The best other, {}: {}{}.", challenger, gain, unfit) if found.challenger else EMPTY
    match found.advice:
        case Move.CHANGE:
            return text("Use {}. Over {}: {}.{}", challenger, of, gain, broken)
        case Move.KEEP:
            return text("{}: keep {}.{}{}", _why_kept(found), of, broken, other)
        case Move.NOTHING:
            return text("Nothing that was tried is shown to meet all of it.{}{}", broken, other)


def _why_kept(found: TuneReading) -> Text:
    if found.unfit:
        return text("No gain that may be used")
    better = 1 if found.higher_is_better else -1
    if found.gain and found.gain.ends and min(better * end for end in found.gain.ends) > 0:
        return text("Less than {} of gain is shown, too little to change a command for", _LEAST)
    return text("No gain shown")


_LEAST = Name(f"{LEAST_GAIN:.0%}".replace("%", " %"))


def _named(found: TuneReading, name: str) -> Text:
    return joined(Quote(one, pointer(name, k)) for k, one in enumerate(getattr(found, name)))


def gain_words(change: RatioChange | None, metric: str, at: str, pairs: Figure) -> Text:
    """Return by how much an objective differs, and how that is known. ``at``: where the JSON has it."""
    if change is None:
        return text("one of the two has no trial that counts")
    said = _change_words(objective(metric), change, at)
    return text("{}, in {} of trials", said, counted(pairs, "fresh pair"))


def _change_words(what: Part, change: RatioChange, at: str) -> Text:
    form = _times if max(map(abs, (change.value, *change.ends))) > 1 else signed_percent
    value, *ends = (
        Figure(one, form, at + pointer(name))
        for name, one in zip(("value", "low", "high"), (change.value, *change.ends), strict=False)
    )
    within = text(" ({} interval {} to {})", Name("95 %"), *ends) if ends else EMPTY
    return text("{} {}{}", what, value, within)


def _times(change: float) -> str:
    """Return a large change as a factor."""
    return f"x {1 + change:.3g}"


def objective(metric: str) -> str:
    """Return an objective in a word or two."""
    known = {"ok_per_s": "requests/s", "cpu_ns_per_request": "CPU time a request"}
    return known.get(metric, METRICS[metric].title)


def _carried(found: TuneReading) -> Text:
    """Return what is used, or else the incumbent, carries in fresh blocks, and at most within the limits."""
    place = next(
        (k for k, one in enumerate(found.fresh) if one.setting == (found.used or found.incumbent)), None
    )
    if place is None or found.fresh[place].rate is None:
        return EMPTY
    one, at = found.fresh[place], pointer("fresh", place)
    who = text("It") if found.used else text("{}", Quote(one.setting, at + pointer("setting")))
    parts = [text("{} carries {}", who, _rate(one, at))]
    if one.latency:
        parts.append(
            text("at a {} of {}", _latency_name(found), _mean(one.latency.mean, duration, at, "latency"))
        )
    if one.memory:
        parts.append(text("in {} of memory", _mean(one.memory.mean, byte_size, at, "memory")))
    words = text("{}: {}.", joined(parts, by=" "), Quote(found.load, "/load"))
    return text("{}{}", words, _most(found))


def _most(found: TuneReading) -> Text:
    carries = found.carries
    if carries is None:
        return EMPTY
    conditions = joined(
        Quote(one, pointer("conditions", k))
        for k, one in enumerate(found.conditions)
        if not one.startswith("memory")
    )
    if carries.rate_per_s is None:
        return text(" No rate was found at which it meets {}.", conditions)
    most = Figure(carries.rate_per_s, rate, "/carries/rate_per_s")
    met, of = each_of(carries, "/carries", count, "met", "of")
    return text(
        " At a fixed rate it meets {} up to {}/s, in {} of {} fresh windows.", conditions, most, met, of
    )


def _rate(one: FreshFigures, at: str) -> Text:
    estimate = one.rate
    if estimate is None:
        return EMPTY
    mean = _mean(estimate.mean, _per_s, at, "rate")
    if estimate.low is None or estimate.high is None:
        return text("{}", mean)
    return text("{} ({} to {})", mean, *each_of(estimate, at + pointer("rate"), _per_s, "low", "high"))


def _per_s(value: float) -> str:
    return in_metric("ok_per_s")(value).replace(" /s", "/s")


def _mean(value: float, form: Form, at: str, name: str) -> Figure:
    return Figure(value, form, at + pointer(name, "mean"))


def _latency_name(found: TuneReading) -> Name:
    return _figure_name(found.latency_metric)


# --- tables -----------------------------------------------------------------------------------------------


def _columns(found: TuneReading) -> tuple[Column, ...]:
    latency = text("{}", _latency_name(found))
    return Column("setting", text=True), Column("requests/s"), Column(latency), Column("memory")


def _fresh(found: TuneReading) -> Table | None:
    """Return what is gained beside what it costs: more throughput may be a longer tail, or more memory."""
    if len(found.fresh) < 2:
        return None
    rows = (
        _row(
            Quote(one.setting, pointer("fresh", k, "setting")),
            *(
                (figure.mean if figure else None, pointer("fresh", k, name, "mean"))
                for name, figure in (("rate", one.rate), ("latency", one.latency), ("memory", one.memory))
            ),
        )
        for k, one in enumerate(found.fresh)
    )
    return Table(_columns(found), tuple(rows))


def _front(found: TuneReading) -> Table | None:
    rows = [(k, one) for k, one in enumerate(found.searched) if one.on_front]
    rows = sorted(rows, key=lambda row: -(row[1].rate or 0.0))[:_MOST_ROWS]
    if len(rows) < 2:
        return None
    return Table(
        _columns(found),
        tuple(
            _row(
                Quote(one.setting, pointer("searched", k, "setting")),
                *(
                    (value, pointer("searched", k, name))
                    for name, value in (("rate", one.rate), ("latency", one.latency), ("memory", one.memory))
                ),
            )
            for k, one in rows
        ),
    )


def _row(setting: Quote, *figures: tuple[float | None, str]) -> tuple[Entry, ...]:
    forms = (_plain_rate, duration, byte_size)
    return (
        Entry.of(setting),
        *(
            Entry("—" if value is None else text("{}", Figure(value, form, at)))
            for form, (value, at) in zip(forms, figures, strict=True)
        ),
    )


def _plain_rate(value: float) -> str:
    return _per_s(value).removesuffix("/s")


# --- what the settings do ---------------------------------------------------------------------------------


def _settings(found: TuneReading) -> Notes | None:
    lines = [("", knob_words(one, found.metric, pointer("knobs", k))) for k, one in enumerate(found.knobs)]
    return Notes(tuple(lines)) if lines else None


def knob_words(one: KnobEffect, metric: str, at: str) -> Text:
    """Return what one setting did, in words. ``at``: where the JSON has it."""
    values: list[Part] = [
        Figure(value, count, at + pointer("values", k)) for k, value in enumerate(one.values)
    ]
    knob, beside = Quote(one.knob, at + pointer("knob")), Quote(one.beside, at + pointer("beside"))
    if one.change is None:
        where = text(" {}", beside) if one.beside else EMPTY
        return text("{} {}: {}", knob, joined(values), _within(one, where, at))
    form = _times if abs(one.change) > 1 else signed_percent
    change = Figure(one.change, form, at + pointer("change"))
    where = text(", {}", beside) if one.beside else EMPTY
    return text("{} {}: {} {}{}", knob, joined(values, by=" to "), objective(metric), change, where)


# A larger bound helps nobody to choose.
_SAYS_NOTHING = 0.5


def _within(one: KnobEffect, where: Text, at: str) -> Text:
    if one.nothing:
        return text("did nothing{}, to within {}", where, Name("5 %"))
    if one.within is None or one.within > _SAYS_NOTHING:
        return text("no difference is shown{}", where)
    most = Figure(one.within, about_percent, at + pointer("within"))
    return text("no difference is shown{}, and none of more than {}", where, most)


# --- one setting tried ------------------------------------------------------------------------------------


# A gain of less is not looked for any longer.
_NOTHING = 0.05


class TryVerdict(StrEnum):
    """What fresh blocks say of a setting."""

    CONFIRMED = "confirmed"
    """It is better by 2 % or more: the whole interval."""
    REFUTED = "not confirmed"
    """It gains less than 5 %: the whole interval."""
    OPEN = "cannot tell"
    """More blocks may decide it, or nothing was compared."""


def try_verdict(gain: Gain | None) -> TryVerdict:
    """Return what the interval of a gain says."""
    if gain is None or gain.low is None or gain.high is None:
        return TryVerdict.OPEN
    if gain.low >= LEAST_GAIN:
        return TryVerdict.CONFIRMED
    return TryVerdict.REFUTED if gain.high < _NOTHING else TryVerdict.OPEN


@dataclass(frozen=True, slots=True)
class Worsened:
    """What became worse after the change, by 2 % or more: the whole interval."""

    metric: str
    """One of METRICS: of throughput, latency or memory."""
    change: RatioChange
    """After against before, with the 95 % interval."""


@dataclass(frozen=True, slots=True)
class TryReading:
    """A setting that was tried."""

    subject: str
    load: str
    """In words."""
    setting: str
    """As `--set` calls it."""
    before: str
    after: str
    verdict: TryVerdict
    metric: str
    """What decides under this load: one of METRICS."""
    change: RatioChange | None
    """After against before, with the 95 % interval; null: nothing was compared."""
    pairs: int
    """How many fresh blocks have both."""
    lost: float | None
    """Of the requests after the change, the share without a valid reply, where it is more than before and
    than 0.1 %; null: it is not.
    """
    worse: tuple[Worsened, ...]
    """Besides the objective."""
    following: str
    """The command that may decide it; empty: it is decided."""


def try_document(found: TryReading) -> Document:
    """Return it as a report."""
    return Document(
        text("{}: {}", Name(found.subject), Name(found.setting)), (Section("", tuple(_blocks(found))),)
    )


def _blocks(found: TryReading) -> Iterator[Block]:
    tone = {TryVerdict.CONFIRMED: Tone.GOOD, TryVerdict.REFUTED: Tone.WARNING}.get(found.verdict, Tone.QUIET)
    yield Paragraph(_sentence(found), tone)
    if found.worse:
        costs = (
            _change_words(_figure_name(one.metric), one.change, pointer("worse", k, "change"))
            for k, one in enumerate(found.worse)
        )
        yield Paragraph(text("Worse after it: {}.", joined(costs, by="; ")))
    if found.following:
        yield Paragraph(text("More blocks may decide it:"))
        yield Command(found.following)


def _figure_name(metric: str) -> Name:
    known = {"pss_end": "memory", "ok_per_s": "requests/s"}
    return Name(known.get(metric) or metric.rpartition("_")[2])


def _sentence(found: TryReading) -> Text:
    at_a_cost = found.worse and found.verdict is TryVerdict.CONFIRMED
    verdict = f"{found.verdict.value}, at a cost" if at_a_cost else found.verdict.value
    turned = text(
        "{} {} to {}", Name(found.setting), Quote(found.before, "/before"), Quote(found.after, "/after")
    )
    change = gain_words(found.change, found.metric, "/change", Figure(found.pairs, count, "/pairs"))
    lost = (
        EMPTY
        if found.lost is None
        else text("; {} of the requests fail", Figure(found.lost, about_percent, "/lost"))
    )
    return text(
        "{}: {}: {}{}, under {}.",
        verdict[:1].upper() + verdict[1:],
        turned,
        change,
        lost,
        Quote(found.load, "/load"),
    )

"""What limits a subject, in words: one line for each, or for several that are alike, and of causes what they
mean and what to try; where the time of a server's threads goes, as rows of a bar and a table.

The only place that has these words. Numbers are those of the report's JSON: `at` is where it has a diagnosis.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from prony.core.units import format_duration, format_rate
from prony.diagnosis.conclusion import Diagnosis, DiagnosisKind
from prony.diagnosis.consumption import Resource
from prony.diagnosis.evidence import Confidence, Finding
from prony.diagnosis.time_spent import ThreadState
from prony.reading.findings import SharedFinding
from prony.reading.groups import Group
from prony.reading.limits import Alike, alike_diagnoses
from prony.reading.study import StudyResults
from prony.report.document import Block, Column, Entry, Notes, Paragraph, Section, Table, Tone
from prony.report.findings import advice_words, finding_words, shared_words
from prony.report.forms import about_percent, count, digits, whole_percent
from prony.report.sections.figures import group_heading
from prony.report.text import EMPTY, Figure, Name, Part, Text, Words, each_of, joined, pointer, text

Timed = tuple[str, Diagnosis, str]
"""A subject, its diagnosis, and where the JSON has that."""


def time_heading(found: Diagnosis, at: str) -> Text:
    """Return what the bar is, and how fine: no finer than one look."""
    looks = Figure(found.looks, count, at + pointer("looks"))
    return text(
        "Where its threads' time goes, by {} looks at them; the shares add up to {}:", looks, Name("100 %")
    )


def time_rows(found: Diagnosis, at: str) -> Iterator[tuple[Words, Figure]]:
    """Yield each state with its share, the greatest first."""
    for state, share in found.time.items():
        yield state.value, Figure(share, about_percent, at + pointer("time", state.value))


def time_table(found: Sequence[Timed]) -> Table | None:
    """Return the shares of several subjects, a column for each state; None where no thread was looked at."""
    timed = [one for one in found if one[1].time]
    states = list(dict.fromkeys(state for _, one, _ in timed for state in one.time))
    if not states:
        return None
    columns = (Column("threads' time", text=True), *(Column(state.value) for state in states))
    rows = (
        (Entry.of(Name(name)), *(_time_share(one, state, at) for state in states)) for name, one, at in timed
    )
    return Table(columns, tuple(rows))


def _time_share(found: Diagnosis, state: ThreadState, at: str) -> Entry:
    if state not in found.time:
        return Entry("")
    return Entry.of(Figure(found.time[state], whole_percent, at + pointer("time", state.value)))


Placed = tuple[Diagnosis, str]
"""A diagnosis, and where the JSON has it."""

_RESOURCES: Mapping[Resource, str] = MappingProxyType(
    {
        Resource.CPU: "its CPU",
        Resource.CORES: "the cores that its processes can fill",
        Resource.SLOTS: "its workers and threads",
        Resource.POOL: "its connections to others",
        Resource.QUEUE: "its listen queue",
        Resource.GENERATOR: "the generator",
    }
)
_SURE: Mapping[Confidence, str] = MappingProxyType(
    {Confidence.CERTAIN: "", Confidence.LIKELY: "likely ", Confidence.POSSIBLE: "possibly "}
)


def diagnosis_words(found: Sequence[Placed]) -> Text:
    """Return what limits a subject, or several with diagnoses that are alike: then with ranges."""
    first, _ = found[0]
    match first.kind:
        case DiagnosisKind.CAUSE:
            return _cause(found)
        case DiagnosisKind.CPU:
            busy, sure = _share(found, Resource.CPU), _SURE[first.confidence]
            over = text("; {}", _asked(found)) if first.overloaded else EMPTY
            if page := _page(found):
                return text("{}CPU-bound: {}; busy {} of the time{}", sure, page, busy, over)
            return text("{}CPU-bound, busy {} of the time{}", sure, busy, over)
        case DiagnosisKind.NOT_AT_LIMIT:
            return text(
                "not at its limit, carries at least {}{}{}", _rate(found), _next(found), _to_try(found)
            )
        case DiagnosisKind.UNKNOWN:
            over = text("; {}", _asked(found)) if first.overloaded else EMPTY
            said, to_try = _slot_for_each(found), EMPTY if first.has_slot_for_each else _to_try(found)
            return text("what limits it is unknown{}{}; {}{}", over, said, ruled_out_words(found), to_try)


def _slot_for_each(found: Sequence[Placed]) -> Text:
    """Return what a closed loop shows that has as many connections as there are workers and threads; empty of
    another load.
    """
    if not all(one.has_slot_for_each for one, _ in found):
        return EMPTY
    slots = _range([(one.slots or 0, at + pointer("slots")) for one, at in found], count)
    if all(one.has_few for one, _ in found):
        worked = _range([(one.at_a_time or 0.0, at + pointer("at_a_time")) for one, at in found], digits(1))
        return text(
            ": all its workers and threads ({}) had a request, and it worked on {} of these at a time, by "
            "how long one takes alone: the others waited within it, as for a CPU or a lock",
            slots,
            worked,
        )
    return text(
        ": the load had as many connections as it has workers and threads ({}), and each asks again only "
        "after its reply: which of them limits it, twice as many connections show (-c)",
        slots,
    )


def _to_try(found: Sequence[Placed]) -> Text:
    """Return that more connections may carry more, where a closed loop left CPU and generator idle, and each
    request was as quick as one that is alone.
    """
    idle = {Resource.CPU, Resource.GENERATOR}
    more = (one.asked_per_s is None and one.has_each_alone and idle <= {*one.ruled_out} for one, _ in found)
    if not all(more):
        return EMPTY
    return text("; more connections may carry more (-c)")


def _cause(found: Sequence[Placed]) -> Text:
    (first, at), several = found[0], len(found) > 1
    if first.cause is None:
        return EMPTY
    finding = first.cause.finding
    said = (shared_words if several else finding_words)(finding, at + pointer("cause", "finding"))
    named = text("{}limited by {}: {}", _SURE[first.confidence], finding.kind.traits.cause, said)
    code = text("; CPU: {}", _page(found)) if first.code and not several else EMPTY
    return text("{}{}{}", named, _full(found), code)


def _full(found: Sequence[Placed]) -> Text:
    """Return that all of them fill their CPUs; empty where one does not, or where nobody looked."""
    if not all(one.fills_cpu for one, _ in found):
        return EMPTY
    return text("; its CPU is full too, busy {} of the time", _share(found, Resource.CPU))


def _page(found: Sequence[Placed]) -> Text:
    """Return what a page costs, and of one subject which code takes most of it; empty: not known."""
    if not all(one.page_cpu_ns for one, _ in found):
        return EMPTY
    cost = _rate(found, "page_cpu_ns", format_duration)
    code, at = found[0][0].code, found[0][1]
    spots = code.hottest if code else ()
    if len(found) > 1 or not spots or spots[0].cpu_ns is None:
        return text("{} a page", cost)
    where = at + pointer("code", "hottest", 0)
    cpu = Figure(spots[0].cpu_ns, format_duration, where + pointer("cpu_ns"))
    called = text(" ({})", Name(spots[0].place)) if spots[0].place else EMPTY
    return text("{} a page, of which {} in {}{}", cost, cpu, Name(spots[0].function), called)


def _asked(found: Sequence[Placed]) -> Text:
    return text("{} were asked for, it did {}", _rate(found, "asked_per_s"), _rate(found))


def _next(found: Sequence[Placed]) -> Text:
    """Return which limit comes next, and at how many times the rate."""
    if not all(one.bounds for one, _ in found):
        return EMPTY
    values = [(one.bounds[0].times, at + pointer("bounds", 0, "times")) for one, at in found]
    nearest = _RESOURCES[found[0][0].bounds[0].resource]
    between = _between(*found[0]) if len(found) == 1 else EMPTY
    times = _range(values, digits(1))
    return text("; next limit: {}, at about {} times this rate{}", nearest, times, between)


def _between(found: Diagnosis, at: str) -> Text:
    """Return the interval of the next limit; empty where it looks like one value, or is not known."""
    bound, where = found.bounds[0], at + pointer("bounds", 0)
    if bound.times_low is None or bound.times_high is None:
        return EMPTY
    low, high = each_of(bound, where, digits(1), "times_low", "times_high")
    return EMPTY if str(low) == str(high) else text(" ({} to {})", low, high)


def _rate(
    found: Sequence[Placed], name: str = "done_per_s", form: Callable[[float], str] = format_rate
) -> Text:
    values = [(getattr(one, name) or 0.0, at + pointer(name)) for one, at in found]
    return _range(values, form)


def _share(found: Sequence[Placed], resource: Resource) -> Text:
    return _range(
        [(one.shares[resource], at + pointer("shares", resource.value)) for one, at in found], whole_percent
    )


def resource_words(resource: Resource) -> str:
    """Return the name of a resource."""
    return _RESOURCES[resource]


def _range(values: Sequence[tuple[float, str]], form: Callable[[float], str]) -> Text:
    """Return the least and the greatest value, or one if they look alike."""
    least, most = (Figure(value, form, at) for value, at in (min(values), max(values)))
    return text("{}", least) if str(least) == str(most) else text("{} to {}", least, most)


def ruled_out_words(found: Sequence[Placed]) -> Text:
    """Return which resources were no limit, and how busy they were."""
    named: list[Part] = [
        text("{} ({})", _RESOURCES[resource], _share(found, resource)) for resource in found[0][0].ruled_out
    ]
    return text("ruled out: {}", joined(named)) if named else text("nothing is ruled out")


def _knob(finding: Finding, at: str) -> Text:
    """Return the subject's own setting that the advice is about, and its value; empty where there is none."""
    knob = finding.knob
    if knob is None:
        return EMPTY
    if not isinstance(knob.value, int) or isinstance(knob.value, bool):
        return text("its setting is {}", Name(knob.name))
    now = Figure(knob.value, count, at + pointer("knob", "value"))
    return text("its setting is {}, now {}", Name(knob.name), now)


def cause_note(finding: Finding, sure: Confidence, at: str) -> Text:
    """Return what a finding means, and what to do: of a certain one the cure, of another one first what shows
    whether it is so. ``at``: of the finding.
    """
    advice, knob, meaning = advice_words(finding, at), _knob(finding, at), finding.kind.meaning
    cure, means = text("{} ({})", advice, knob) if knob else advice, meaning.consequence.words
    if sure is Confidence.CERTAIN:
        parts = [text("Means: {}.", means), text("Try: {}.", cure) if advice else EMPTY]
        return joined([*filter(bool, parts), text("To confirm: {}.", meaning.experiment.words)], by=" ")
    parts = [text("Would mean: {}.", means), text("Test it: {}.", meaning.experiment.words)]
    return joined([*parts, text("If that is so: {}.", cure)] if advice else parts, by=" ")


# --- findings of several subjects -------------------------------------------------------------------------


def found_words(one: SharedFinding) -> Text:
    """Return a finding, of several subjects without the figures of one trial."""
    words = shared_words if len(one.subjects) > 1 else finding_words
    return words(one.finding, pointer("findings", one.found[0]))


def often_words(one: SharedFinding, at: str) -> Text:
    """Return in how many of their trials it was; empty where they have one. ``at``: where the JSON has it."""
    return EMPTY if one.of <= 1 else text(" ({} of {} trials)", *each_of(one, at, count, "trials", "of"))


# --- the limits of each, in a report ----------------------------------------------------------------------


def limits_of_each(reading: StudyResults) -> Section | None:
    """Return what limits each subject; None where no trial says."""
    blocks = [block for group in reading.measured for block in _of_load(reading, group)]
    return Section("What limits each", tuple(blocks)) if blocks else None


def _of_load(reading: StudyResults, group: Group) -> Iterator[Block]:
    found = alike_diagnoses(reading, group, range(len(group.cells)))
    if not found:
        return
    place = reading.place(group)
    if len(reading.measured) > 1:
        yield Paragraph(text("{}:", group_heading(group, place)), Tone.QUIET)
    yield Notes.of(_line(one, place) for one in found)
    timed = [
        (name, diagnosis, at)
        for one in found
        for name, (diagnosis, at) in zip(one.subjects, placed(one, place), strict=True)
    ]
    if (times := time_table(timed)) is not None:
        yield times


def _line(alike: Alike, group: int) -> Text:
    found = placed(alike, group)
    names = joined(Name(name) for name in alike.subjects)
    return text("{}: {}.{}", names, diagnosis_words(found), _note(found[0]))


def _note(found: Placed) -> Text:
    diagnosis, at = found
    if diagnosis.cause is None:
        return EMPTY
    finding = diagnosis.cause.finding
    return text(" {}", cause_note(finding, diagnosis.confidence, at + pointer("cause", "finding")))


def placed(alike: Alike, group: int) -> list[Placed]:
    """Return the diagnoses with where the report's JSON has each. ``group``: its place in the results."""
    return [
        (found, pointer("groups", group, "cells", cell, "diagnosis"))
        for found, cell in zip(alike.diagnoses, alike.cells, strict=True)
    ]

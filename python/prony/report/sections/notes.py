"""Remarks below the tables: causes, versions, the sandbox, and how to read figures.

Remarks on how the generator kept its times: the one pacing of a study, and what it adds to a latency.

Remarks on the pilot: which servers were still warming up when their windows would have begun.
"""

from collections.abc import Callable, Iterator, Set

from prony.core.metrics import METRICS
from prony.core.units import SECOND_NS, seconds
from prony.diagnosis.evidence import Confidence
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.figures.summary import CellSummary, Estimate
from prony.model.workload import OpenLoop, Pacing
from prony.reading.findings import SharedFinding
from prony.reading.groups import Replies, UnequalReplies, unequal_replies
from prony.reading.senders import WarmUp
from prony.reading.study import StudyResults
from prony.report.diagnoses import found_words, often_words
from prony.report.document import Notes, Section
from prony.report.findings import advice_words
from prony.report.forms import count, day, duration, in_metric, signed_percent
from prony.report.sections.checks import (
    calibration_notes,
    dependence_notes,
    evidence_notes,
    order_notes,
    pace_notes,
    subject_words,
)
from prony.report.sections.sandbox import sandbox_notes
from prony.report.tables import cell_at
from prony.report.text import (
    EMPTY,
    Figure,
    Name,
    Quote,
    Text,
    counted,
    framed,
    joined,
    listed,
    pointer,
    text,
)
from prony.report.words import group_words

_MOST_LONGER = 6


def warm_up_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield whose warm-up the pilot made longer, who was not warm by then, and where it cannot be said."""
    found = list(enumerate(reading.warm_ups))
    if not found:
        return
    later = [(k, one) for k, one in found if one.is_longer and not one.last.changes]
    longer = [text("{} ({})", _where(reading, one), _used(k, one)) for k, one in later]
    if longer:
        yield text(
            "Warmed up longer than planned, as the pilot found: {}.", listed(longer, most=_MOST_LONGER)
        )
    changing = [_changing(reading, k, one) for k, one in found if one.last.changes]
    if changing:
        yield text("The pilot saw no end of the warm-up: {}.", listed(changing, most=_MOST_LONGER))
    unknown = [(k, one) for k, one in found if one.last.reason]
    if unknown:
        k, one = unknown[0]
        why = Quote(one.last.reason, _warmed_at(k, one) + pointer("reason"))
        cells = counted(Figure(len(unknown), count, "/warm_ups"), "cell")
        yield text("The pilot found no warm-up of {}, such as {}: {}.", cells, _where(reading, one), why)
    if not (longer or changing or unknown):
        yield text("The pilot found all warm within the planned warm-up.")


def _warmed_at(place: int, one: WarmUp) -> str:
    return pointer("warm_ups", place, "looks", len(one.looks) - 1)


def _changing(reading: StudyResults, place: int, one: WarmUp) -> Text:
    looked = counted(Figure(one.last.seconds, count, _warmed_at(place, one) + pointer("seconds")), "second")
    words = "{} (its pace still changed after {}; its trials warm up for {})"
    return text(words, _where(reading, one), looked, _used(place, one))


def _used(place: int, one: WarmUp) -> Figure:
    return Figure(one.used_ns, _length, pointer("warm_ups", place, "used_ns"))


def _length(nanoseconds: float) -> str:
    return f"{seconds(round(nanoseconds)):g} s"


def _where(reading: StudyResults, one: WarmUp) -> Text:
    return subject_words(reading, next(cell for cell in reading.cells if cell.cell.id == one.cell_id))


def fitness_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield whether the load engine was fit to measure with on the machine, if it was calibrated there."""
    for k, run in enumerate(reading.runs):
        found = run.facts.generator
        if found is not None:
            at = pointer("runs", k, "facts", "generator")
            made = Figure(found.made_unix_s, _day, at + pointer("made_unix_s"))
            reasons = joined(Quote(why, at + pointer("reasons", n)) for n, why in enumerate(found.reasons))
            why = text(" ({})", reasons) if found.reasons else ""
            yield text("Load engine, calibrated on {}: {}{}.", made, found.level.value, why)
            return


def _day(unix_s: float) -> str:
    return day(unix_s * SECOND_NS)


def pacing_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield the pacing of the study's open loops, and what economical pacing adds to a response time."""
    cells = [cell for cell in reading.cells if isinstance(cell.cell.workload.loop, OpenLoop)]
    found = {pacing for cell in cells for pacing in _pacings(cell)}
    if found == {Pacing.PRECISE}:
        yield text("Precise pacing at every rate: the generator slept, then spun until a request was due.")
    elif found == {Pacing.ECONOMICAL}:
        yield text("Economical pacing at every rate: the generator only slept{}.", _added(reading))
    elif found:
        yield text(
            "The generator paced some rates precisely and others economically: their response times cannot "
            "be compared."
        )


def _pacings(cell: CellSummary) -> set[Pacing]:
    engines = (trial.engine for trial in cell.counted)
    return {engine.pacing for engine in engines if engine is not None and engine.pacing is not None}


def _added(reading: StudyResults) -> Text:
    """Return how late it sent in the cell where it was latest at p50, which response times include."""
    lags = [(value.mean, cell) for cell in reading.cells if (value := _lag(cell, 50))]
    if not lags:
        return text("")
    _, worst = max(lags, key=lambda found: found[0])
    parts = [
        text(
            "{} at p{}", Figure(value.mean, duration, _at(reading, worst, percentile)), Name(f"{percentile}")
        )
        for percentile in (50, 99)
        if (value := _lag(worst, percentile))
    ]
    late = parts[0] if len(parts) == 1 else text("{}, {}", *parts)
    return text(", and sent up to {} late (the mean over trials); response times include that", late)


def _lag(cell: CellSummary, percentile: int) -> Estimate | None:
    return cell.known(f"send_lag_p{percentile}")


def _at(reading: StudyResults, cell: CellSummary, percentile: int) -> str:
    return cell_at(reading, cell) + pointer("metrics", f"send_lag_p{percentile}", "mean")


def work_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield for each load the subjects whose replies differ most in size, where that is more than a tenth."""
    said: set[tuple[str, str]] = set()
    for place, group in enumerate(reading.groups):
        found = None if group.of_generators else unequal_replies(group.cells)
        if found is None or (pair := (found.smallest.cell.name, found.largest.cell.name)) in said:
            continue
        said.add(pair)
        under = framed("", group_words(group, place), ": ") if len(reading.groups) > 1 else EMPTY
        yield text("{}{}", under, _difference(reading, found))


def _difference(reading: StudyResults, found: UnequalReplies) -> Text:
    parts = (_size(reading, one) for one in (found.smallest, found.largest))
    return text(
        "Replies are not of one size, from {} to {}, heads included: that may be a part of a difference in "
        "speed.",
        *parts,
    )


def _size(reading: StudyResults, found: Replies) -> Text:
    at = cell_at(reading, found.cell) + pointer("metrics", "reply_bytes", "mean")
    return text("{} ({})", Figure(found.mean_bytes, in_metric("reply_bytes"), at), Name(found.cell.name))


_MOST = 6


def _versions(reading: StudyResults) -> Iterator[Text]:
    servers = {subject.name: subject.server for subject in reading.plan.subjects()}
    own = set(servers)
    records = [(name, record) for name, record in reading.subjects.items() if name in own]
    measured = [record for _, record in records if record.server_version]
    on = {record.interpreter or "" for record in measured if record.interpreter != record.server_version}
    known: dict[str, str] = {}
    remarks: dict[str, str] = {}
    for name, record in records:
        remarks |= record.facts.remarks
        known |= {service: version for service, version in record.facts.services.items() if version}
        front = record.facts.frontend
        if front and front.version:
            known[front.name.partition("-")[0]] = front.version
        if record.server_version:
            # An interpreter that all share is shown once.
            other = len(on) > 1 and record.interpreter not in (None, "", record.server_version)
            known[servers.get(name, name)] = record.server_version + (
                f" on {record.interpreter}" if other else ""
            )
    if known:
        alike = text(", on {}", Name(next(iter(on)))) if len(on) == 1 and "" not in on else ""
        versions = joined(Name(f"{server} {version}") for server, version in known.items())
        yield text("Versions: {}{}.", versions, alike)
    for server, remark in remarks.items():
        yield text("{}: {}.", Name(server), Name(remark))


def _finding_notes(reading: StudyResults) -> Iterator[Text]:
    advised: set[str] = set()
    ran = {cell.name for group in reading.groups for cell in group.cells if cell.total}
    for k, alike in enumerate(reading.shared_findings):
        advice = advice_words(alike.finding, pointer("findings", alike.found[0]))
        offer = " Advice: {}." if alike.finding.confidence is Confidence.CERTAIN else " If that is so: {}."
        added = text(offer, advice) if advice and str(advice) not in advised else EMPTY
        advised.add(str(advice))
        often = often_words(alike, pointer("shared_findings", k))
        yield text("{}: {}{}.{}", _whose(alike, ran), found_words(alike), often, added)


def _whose(alike: SharedFinding, ran: Set[str]) -> Text:
    names = alike.subjects
    return text("all subjects") if len(names) > 1 and ran <= set(names) else joined(map(Name, names))


def _is_shared(cell: CellSummary) -> bool:
    return any(trial.placement is not None and trial.placement.shared for trial in cell.counted)


def _bound_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield whose figures are bounds, and why."""
    reasons: tuple[tuple[str, str, Callable[[CellSummary], bool]], ...] = (
        (
            "other programs or the hypervisor took CPU time in some trial",
            "with all of that time",
            lambda cell: any(trial.disturbed for trial in cell.counted),
        ),
        (
            "the generator was the limit in some trial, or may have been in most",
            "without what the generator can have taken from it",
            lambda cell: cell.held_back,
        ),
        (
            "the generator ran on its CPUs",
            "with all CPU time that this took",
            lambda cell: cell.generator_share > 0,
        ),
        (
            "the server ran on the generator's CPUs",
            "with all CPU time that this took",
            lambda cell: cell.is_of_generator and cell.at_least and _is_shared(cell),
        ),
    )
    for reason, spared, has in reasons:
        found = dict.fromkeys(cell.name for cell in reading.cells if has(cell))
        if found:
            names = listed([text("{}", Name(name)) for name in found], most=_MOST)
            yield text(
                f"{{}}: {reason}. Its throughput is at least what is shown (≥), its latency at most (≤). No "
                f"verdict or claim calls it worse, unless it would be worse even {spared}.",
                names,
            )


def _stall_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield each subject with single trials that were far off: no interval covers what is so rare."""
    for place, group in enumerate(reading.groups):
        under = framed("", group_words(group, place), ", ") if len(reading.groups) > 1 else EMPTY
        for name, found in group.stalls.items():
            at = pointer("groups", place, "stalls", name)
            yield text(
                "{}: {}{} of {} trials stalled ({}: {} against the median). That is too rare for an "
                "interval: verdicts are about the other trials.",
                *(Name(name), under, Figure(found.trials, count, at + pointer("trials"))),
                *(
                    Figure(found.of, count, at + pointer("of")),
                    Name(METRICS[group.answer.metric or ""].title),
                ),
                Figure(found.worst, signed_percent, at + pointer("worst")),
            )


def _session_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield what intervals leave out: how sessions differ."""
    if reading.sessions == 1:
        yield text(
            "All intervals are within one session: on another day, or another machine of this kind, figures "
            "may differ by more than they say."
        )
        return
    sessions = Figure(reading.sessions, count, "/extent/sessions")
    if reading.sessions < LEAST_BLOCKS:
        yield text(
            "The trials are of {} sessions (a pause, another day or machine), and each counts once: what a "
            "day does to a subject is the same for all of its blocks. Verdicts and intervals need {} of "
            "them; ranges are those of single sessions.",
            *(sessions, Name(f"{LEAST_BLOCKS}")),
        )
        return
    yield text(
        "The trials are of {} sessions (a pause, another day or machine), and each counts once: intervals "
        "and verdicts are over the sessions, and hold on another day too.",
        sessions,
    )


def _allowed_notes(reading: StudyResults) -> Iterator[Text]:
    """Yield how many errors were allowed, where that was asked for: speed is that of successes only."""
    allowed = reading.plan.design.allow_errors
    if allowed is not None:
        shown = Figure(allowed, lambda ratio: f"{100 * ratio:g} %", "/plan/design/allow_errors")
        yield text(
            "Speed is compared where up to {} of the requests fail (--allow-errors): it is that of the "
            "successes only.",
            shown,
        )


def notes(reading: StudyResults) -> Section:
    """Return the remarks on a study."""
    items = (
        *_finding_notes(reading),
        *_allowed_notes(reading),
        *work_notes(reading),
        *warm_up_notes(reading),
        *pace_notes(reading),
        *evidence_notes(reading),
        *calibration_notes(reading),
        *dependence_notes(reading),
        *order_notes(reading),
        *fitness_notes(reading),
        *pacing_notes(reading),
        *_bound_notes(reading),
        *_stall_notes(reading),
        *_versions(reading),
        *sandbox_notes(reading),
    )
    items = (*items, *_session_notes(reading))
    if any(cell.ok > 1 for group in reading.groups for cell in group.cells):
        items = (*items, _signs(reading))
    return Section("Notes", (Notes.of(items),))


def _signs(reading: StudyResults) -> Text:
    """Return what the signs in tables mean."""
    n = "n: trials that count of those run."
    if 1 < reading.sessions < LEAST_BLOCKS:
        return text(n)
    over = "its trials, with the drift of the blocks" if reading.sessions == 1 else "the sessions"
    example = Name("1 (0.9–1.1)")
    return text(f"{{}}: a subject's mean and its {{}} interval over {over}; {n}", example, Name("95 %"))

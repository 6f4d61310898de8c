"""How far the figures can be trusted, in three lines: the generator, the machine, and how steady and how many
the trials were.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

from prony.core.units import seconds
from prony.figures.account import are_redirects
from prony.figures.steadiness import Steadiness
from prony.figures.summary import NOT_STEADY, CellSummary
from prony.model.facts import AskedProgram
from prony.plan.factors import asks_for_workers
from prony.reading.brief import is_of_the_bench
from prony.reading.cells import coarsest, followed, unknown_pace
from prony.reading.checks import Calibrations
from prony.reading.findings import SharedFinding
from prony.reading.groups import Group
from prony.reading.study import StudyResults
from prony.report.diagnoses import found_words
from prony.report.document import Judgement, Tone
from prony.report.forms import TENFOLD, about_percent, count, digits, signed_percent
from prony.report.sections.answer import limited_ties
from prony.report.sections.checks import busiest_words, unknown_at
from prony.report.sections.head import limited_words
from prony.report.sections.sandbox import placed_together, taken_words
from prony.report.tables import cell_at
from prony.report.text import EMPTY, Figure, Name, Quote, Text, counted, each_of, joined, pointer, text
from prony.report.words import cause_words

# A tenth is as large as the differences that most studies look for.
_MOST_DRIFT = 0.1
_MOST_MINUTES = 180


def trust_lines(reading: StudyResults) -> Iterator[Judgement]:
    """Yield a line on the generator, one on the machine, one on what the app asks there, one on the
    trials.
    """
    yield from _generator(reading)
    yield from _on_its_cpus(reading)
    machine = _machine(reading)
    yield replace(machine, sentence=joined([*_for_cpus(reading), machine.sentence], by="; "))
    yield from _asked(reading)
    yield from _trials(reading)
    yield from _statuses(reading)
    yield from _followed(reading)


def _generator(reading: StudyResults) -> Iterator[Judgement]:
    said, trials = limited_words(reading), sum(reading.limited.values())
    if said is not None:
        yield Judgement("generator", Tone.WARNING, text("{}: read as bounds", said))
    elif trials:
        of = counted(Figure(trials, count, "/extent/limited/of"), "trial")
        yield Judgement("generator", Tone.PLAIN, text("was not the limit in any of {}", of))


def _on_its_cpus(reading: StudyResults) -> Iterator[Judgement]:
    """Yield for how many CPUs the figures hold, where the generator was on the server's."""
    taken = taken_words(reading)
    if taken and len(reading.placements) == 1:
        yield Judgement("", Tone.PLAIN, text("{}{}, so speeds are bounds", placed_together(reading), taken))


# --- the machine ------------------------------------------------------------------------------------------


def _for_cpus(reading: StudyResults) -> Iterator[Text]:
    """Yield for how many of the CPUs an answer on workers holds, where that is not for all."""
    there = reading.fingerprint.fact("cpu", "available")
    least, at = min(((len(one.server_cpus), k) for k, one in enumerate(reading.placements)), default=(0, 0))
    if isinstance(there, int) and 0 < least < there and asks_for_workers(reading.plan.subjects(), least):
        had = Figure(least, count, pointer("placements", at, "server_cpus"))
        of = counted(Figure(there, count, "/fingerprint/cpu/available"), "CPU")
        yield text("{} of {} (--share-cpus: all)", had, of)


def _machine(reading: StudyResults) -> Judgement:
    found = [*_searched(reading), *_disturbances(reading), *_busiest(reading), *_drift(reading)]
    if found:
        return Judgement("machine", Tone.WARNING, joined(found, by="; "))
    calibrated = reading.calibrations
    if calibrated is None:
        return Judgement("machine", Tone.QUIET, "no disturbance seen; not calibrated")
    trials = counted(Figure(calibrated.trials, count, "/drift/trials"), "calibration")
    most = _largest_drift(calibrated)
    if most is None:
        return Judgement("machine", Tone.QUIET, text("no disturbance seen; {}, too few for a drift", trials))
    if abs(most.value) <= _MOST_DRIFT:
        return Judgement(
            "machine", Tone.PLAIN, text("no disturbance seen; in {} no drift above {}", trials, most)
        )
    # Beside so wide a bound "no disturbance" would say more than was seen.
    said = text("in {} only a drift of more than {} would have been seen", trials, most)
    return Judgement("machine", Tone.PLAIN, said)


def _asked(reading: StudyResults) -> Iterator[Judgement]:
    """Yield which programs of the machine count as parts of the subjects."""
    asked = [(one, pointer("asked", k)) for k, one in enumerate(reading.asked)]
    if said := [_program(*one) for one in asked if one[0].name]:
        line = text("{}: part of each figure of CPU, with a role of its own", joined(said, by="; "))
        yield Judgement("asks", Tone.PLAIN, line)
    if unseen := [_unseen(*one) for one in asked if not one[0].name]:
        words = "what listens at {} may only be seen by root: CPU and memory are at least what is shown"
        yield Judgement("asks", Tone.WARNING, text(words, joined(unseen)))


def _program(one: AskedProgram, at: str) -> Text:
    number = counted(Figure(one.connections, count, at + pointer("connections")), "connection")
    said = text("{}, a {} at {}, over up to {}", Name(one.name), Name(one.role), Name(one.place), number)
    if not one.idle_cores:
        return said
    idle = Figure(one.idle_cores, about_percent, at + pointer("idle_cores"))
    return text("{} ({} of a CPU without load is taken off)", said, idle)


def _unseen(one: AskedProgram, at: str) -> Text:
    number = counted(Figure(one.connections, count, at + pointer("connections")), "connection")
    return text("{} (over up to {})", Name(one.place), number)


def _largest_drift(found: Calibrations) -> Figure | None:
    """Return how large a drift may be that was not shown: the farthest end of an interval; None without
    any.
    """
    ends = [
        (abs(end), end, pointer("drift", "metrics", metric, side))
        for metric, one in found.drifts.items()
        for side, end in (("low", one.low), ("high", one.high))
        if end is not None
    ]
    if not ends:
        return None
    _, end, at = max(ends)
    return Figure(end, lambda value: about_percent(abs(value)), at)


def _searched(reading: StudyResults) -> Iterator[Text]:
    """Yield what trials of a search suffered: they are no trials of subjects, and have no findings."""
    found = reading.search
    if found is None or not found.disturbed:
        return
    first, *more = found.causes
    disturbed, of = each_of(found, "/search", count, "disturbed", "trials")
    others = " and other causes" if more else ""
    why = cause_words(first.cause, "/search/causes/0")
    yield text(f"{{}} of {{}} trials of the search were disturbed ({{}}{others})", disturbed, of, why)


def _disturbances(reading: StudyResults) -> Iterator[Text]:
    """Yield what disturbed trials, and whether it made some void."""
    others = (trial.fault for cell in reading.cells for trial in cell.others)
    if any(fault.kind.is_of_environment for fault in others if fault):
        yield text("it disturbed trials so that they do not count")
    for place, one in enumerate(reading.shared_findings):
        kind = one.finding.kind
        if is_of_the_bench(kind) and not kind.is_of_generator:
            yield _disturbance(one, place)


def _disturbance(one: SharedFinding, place: int) -> Text:
    numbers = each_of(one, pointer("shared_findings", place), count, "trials", "of")
    return text("{}, in {} of {} trials", found_words(one), *numbers)


def _busiest(reading: StudyResults) -> Iterator[Text]:
    if reading.others is not None and (named := busiest_words(reading)):
        share = Figure(reading.others.share, about_percent, "/others/share")
        yield text("others used {} of the CPUs' time ({})", share, named)


def _drift(reading: StudyResults) -> Iterator[Text]:
    found = reading.calibrations
    for metric, drift in found.drifts.items() if found else ():
        if drift.drifts and drift.change is not None:
            change = Figure(drift.change, signed_percent, pointer("drift", "metrics", metric, "change"))
            yield text("it drifted over the study ({})", change)
            return


# --- the trials -------------------------------------------------------------------------------------------


def _trials(reading: StudyResults) -> Iterator[Judgement]:
    found = [*_power(reading), *_levels(reading), *_steadiness(reading)]
    if found:
        yield Judgement("trials", Tone.PLAIN, joined(found, by="; "))


def _steadiness(reading: StudyResults) -> Iterator[Text]:
    why = unknown_pace(reading.cells)
    if why is not None:
        yield text("steadiness is not known: {}", Quote(why, unknown_at(reading, why)))
        return
    known = [cell for cell in reading.cells if cell.ok]
    unsteady = [
        cell for cell in known if isinstance(cell.steadiness, Steadiness) and not cell.steadiness.is_steady
    ]
    kept_out = [cell for cell in unsteady if cell.unqualified == NOT_STEADY]
    if unsteady:
        first, *more = dict.fromkeys(cell.name for cell in kept_out or unsteady)
        others = text(" and {} more", Name(str(len(more)))) if more else ""
        said = ", so in no verdict without --force" if kept_out else ""
        yield text(f"not steady{said}: {{}}{{}}", Name(first), others)
    elif known:
        yield from _hidden(reading)


def _hidden(reading: StudyResults) -> Iterator[Text]:
    """Yield that no subject changed its pace, and which change would have been seen in each of them."""
    said, found = "no subject was seen to change its pace", coarsest(reading.cells)
    if found is None:
        yield text(said)
        return
    cell, one = found
    visible = Figure(one.visible, about_percent, cell_at(reading, cell) + pointer("steadiness", "visible"))
    yield text(f"{said} (a change of {{}} would have been)", visible)


# --- the replies ------------------------------------------------------------------------------------------

_USUAL = "200"


def _statuses(reading: StudyResults) -> Iterator[Judgement]:
    """Yield which statuses the valid replies had: a redirect to a login page is one too."""
    known = [cell for cell in reading.cells if cell.account.ok_status]
    others = [cell for cell in known if set(cell.account.ok_status) != {_USUAL}]
    if not others:
        if known:
            yield Judgement("replies", Tone.QUIET, text("all valid ones had status {}", Name(_USUAL)))
        return
    redirected = [cell for cell in others if are_redirects(cell.account.ok_status)]
    first, *more = redirected or others
    and_more = text(" and {} more", Name(str(len(more)))) if more else ""
    said = text("{}{}: {}", Name(first.name), and_more, _by_status(reading, first))
    if not redirected:
        yield Judgement("replies", Tone.PLAIN, said)
        return
    words = "{}: most are redirects; --follow 3 follows them, with --expect-status {} they are failures"
    yield Judgement("replies", Tone.WARNING, text(words, said, Name(_USUAL)))


def _followed(reading: StudyResults) -> Iterator[Judgement]:
    """Yield how many redirects were followed: they are work of the server, and no requests."""
    found = [cell for cell in reading.cells if followed(cell)]
    if found:
        and_more = text(" and {} more", Name(str(len(found) - 1))) if found[1:] else ""
        words = _counts_by_status(followed(found[0]), cell_at(reading, found[0]) + pointer("followed"))
        said = text("{}{}: {} followed, beside the requests", Name(found[0].name), and_more, words)
        yield Judgement("redirects", Tone.PLAIN, said)


def _by_status(reading: StudyResults, cell: CellSummary) -> Text:
    """Return how many valid replies of a cell had which status, most first."""
    return _counts_by_status(cell.account.ok_status, cell_at(reading, cell) + pointer("ok_status"))


def _counts_by_status(counts: Mapping[str, int], at: str) -> Text:
    most_first = sorted(counts.items(), key=lambda item: -item[1])
    return joined(
        text("{} with status {}", Figure(number, count, at + pointer(status)), Name(status))
        for status, number in most_first
    )


def _levels(reading: StudyResults) -> Iterator[Text]:
    """Yield how far the throughput of a server scatters from start to start, and within one start; or which
    subjects have no rounds, where others have.
    """
    for place, group in enumerate(reading.groups):
        cells = [cell for cell in group.cells if cell.ok and group.primary]
        if without := _without_rounds(cells):
            (first, blocks), *others = without
            more = text(" and {} more", Name(str(len(others)))) if others else ""
            where = text(" in {} of the blocks", Name(str(blocks))) if blocks < first.ok else ""
            yield text("no rounds of {}{}{}: figures of their own windows", Name(first.name), more, where)
        found, at = group.levels, pointer("groups", place, "levels")
        if found is not None and group.primary:
            rounds = Figure(found.rounds, count, at + pointer("rounds"))
            if found.between:
                both = each_of(found, at, about_percent, "between", "within")
                words = "throughput differs by {} from start to start, by {} within one ({} rounds)"
                yield text(words, *both, rounds)
            else:
                # An estimate of nothing is a variance below that of the rounds: nobody has seen none.
                within = Figure(found.within, about_percent, at + pointer("within"))
                words = "throughput differs by {} within a start ({} rounds), not visibly more between starts"
                yield text(words, within, rounds)
            if found.agree_within is not None and not found.apart:
                within = Figure(found.agree_within, about_percent, at + pointer("agree_within"))
                yield text("rounds differ from own windows by at most {}", within)
            for name, ratio in found.apart.items():
                times = Figure(ratio, digits(2), at + pointer("apart", name))
                yield text("rounds of {} show {} times the throughput of its own windows", Name(name), times)
            return


def _without_rounds(cells: Sequence[CellSummary]) -> list[tuple[CellSummary, int]]:
    """Return who lacks rounds in blocks in which others have them, and in how many of these."""
    have = {trial.block for cell in cells for trial in cell.counted if trial.by_round}
    lack = [(cell, sum(one.block in have and not one.by_round for one in cell.counted)) for cell in cells]
    return [(cell, blocks) for cell, blocks in lack if blocks]


def _power(reading: StudyResults) -> Iterator[Text]:
    for place, group in enumerate(reading.groups):
        found, at = group.power, pointer("groups", place, "power")
        if found is not None and group.primary:
            difference = Figure(found.difference, about_percent, at + pointer("difference"))
            unit = "session" if group.answer.by_session else "block"
            blocks = counted(Figure(found.blocks, count, at + pointer("blocks")), unit)
            if found.difference >= TENFOLD:
                yield text("{} find only differences of more than {}", blocks, difference)
            else:
                yield text("{} find differences of {} or more{}", blocks, difference, _longer(reading, group))
            return


def _longer(reading: StudyResults, group: Group) -> Text:
    """Return what to type for half of the difference, where several share the first place; empty where that
    takes more than hours, and where time cannot be asked for.
    """
    found, design = group.power, reading.plan.design
    times = found.times_for_half if found is not None else None
    answer = group.answer
    shared = answer.leader is not None and answer.decided and answer.ties and not answer.by_session
    if times is None or not shared or limited_ties(group) or len(reading.runs) > 1 or design.precision:
        return EMPTY
    starts = [trial.started_unix_ns for trial in reading.trials]
    minutes = ceil(times * seconds(max(starts) - min(starts)) / 60)
    # A length that the report reckons for the next study: no value of this one.
    return text(": half of it with --for {}", Name(f"{minutes}m")) if minutes <= _MOST_MINUTES else EMPTY

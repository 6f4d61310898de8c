"""The head of a report: the question, the machine, and whether there are enough blocks for verdicts."""

from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.model.limit import Limited
from prony.model.trial import RunStatus, TrialRole
from prony.reading.brief import Brief
from prony.reading.study import StudyResults
from prony.report.across import machines_words
from prony.report.document import Block, Notes, Paragraph, Section, Tone
from prony.report.forms import count, day
from prony.report.sections.figures import group_heading
from prony.report.sections.tls import agreed_notes, disagreements
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, counted, joined, pointer, text
from prony.report.words import machine_words

# The blocks that a study needs for verdicts, and a better number.
_LEAST, _BETTER = Name(f"{LEAST_BLOCKS}"), Name("10")


def _blocks(reading: StudyResults) -> Text:
    return counted(Figure(reading.blocks, count, "/extent/blocks"), "block")


def _rounds(reading: StudyResults) -> Text:
    """Return how many of the blocks had rounds alone; empty where none had."""
    alone = reading.extent.blocks_of_rounds
    return text(", {} of rounds alone", Figure(alone, count, "/extent/blocks_of_rounds")) if alone else EMPTY


def _trials(reading: StudyResults, role: TrialRole) -> Text:
    return counted(Figure(reading.count(role), count, pointer("extent", "trials", role.value)), "trial")


def _seed(reading: StudyResults) -> Text:
    # Without separators, so that it can be typed again.
    return text("seed {}", Figure(reading.plan.seed, lambda value: f"{value:.0f}", "/plan/seed"))


def _too_few(reading: StudyResults) -> tuple[Block, ...]:
    # Of several sessions the answer says how many are needed.
    if reading.blocks >= LEAST_BLOCKS or reading.is_search or reading.sessions > 1:
        return ()
    be = "is" if reading.blocks == 1 else "are"
    words = text(
        f"{{}} {be} too few for verdicts, which need {{}} (better {{}}): run the same command with "
        "--repeats {}.",
        *(_blocks(reading), _LEAST, _BETTER, _BETTER),
    )
    return (Paragraph(words, Tone.WARNING),)


def limited_words(reading: StudyResults) -> Text | None:
    """Return in how many trials the generator set the figures, or may have; None in none."""
    found = reading.limited
    yes, suspect = found[Limited.YES], found[Limited.SUSPECT]
    if not yes and not suspect:
        return None
    of = counted(Figure(sum(found.values()), count, "/extent/limited/of"), "trial")
    sure = Figure(yes, count, "/extent/limited/yes")
    unsure = Figure(suspect, count, "/extent/limited/suspect")
    if not yes:
        return text("may have been the limit in {} of {}", unsure, of)
    if not suspect:
        return text("was the limit in {} of {}", sure, of)
    return text("was the limit in {} of {}, perhaps in {} more", sure, of, unsure)


def _limited(reading: StudyResults) -> tuple[Block, ...]:
    said = limited_words(reading)
    if said is None:
        return ()
    return (Paragraph(text("The generator, not the server, {}: see the notes.", said), Tone.WARNING),)


def _forced(reading: StudyResults) -> tuple[Block, ...]:
    """Return why the figures may not be valid, if --force was needed to measure them."""
    said = dict.fromkeys(one for run in reading.runs for one in run.fingerprint.forced)
    if not said:
        return ()
    faults = joined(map(Name, said), by="; ")
    return (Paragraph(text("Measured only because of --force: {}", faults), Tone.BAD),)


def _interrupted(reading: StudyResults) -> tuple[Block, ...]:
    if all(run.status is not RunStatus.INTERRUPTED for run in reading.runs[-1:]):
        return ()
    words = "The last run was interrupted: the figures include only the trials before that."
    return (Paragraph(words, Tone.WARNING),)


def _stopped(reading: StudyResults) -> tuple[Block, ...]:
    """Return the rule that ended a study without a fixed number of blocks."""
    stops = [(k, run.facts.stopped) for k, run in enumerate(reading.runs)]
    found = next(((k, one) for k, one in reversed(stops) if one is not None), None)
    if found is None:
        return ()
    run, stop = found
    at = pointer("runs", run, "facts", "stopped")
    blocks = counted(Figure(stop.blocks, count, at + pointer("blocks")), "block")
    words = text("Stopped after {}: {}.", blocks, Quote(stop.words, at + pointer("words")))
    return (Paragraph(words, Tone.QUIET),)


def _order(reading: StudyResults) -> Text:
    """Return the number of trials and their order."""
    searched = reading.count(TrialRole.FIND_RATE)
    ran = reading.count(TrialRole.SUBJECT)
    if searched and not ran:
        return text("{} of a search ({}).", _trials(reading, TrialRole.FIND_RATE), _seed(reading))
    if not ran:
        return text("No trial was run.")
    cells = counted(Figure(len(reading.plan.cells), count, "/plan/cells"), "cell")
    where = text("its block") if reading.blocks == 1 else text("each of {}", _blocks(reading))
    calibrated = reading.count(TrialRole.CALIBRATION) > 0
    within = " the others" if reading.extent.blocks_of_rounds else ""
    end = f", with a calibration before, after and within{within}." if calibrated else "."
    more = joined((_of_sessions(reading), _rounds(reading)), by="")
    parts = (_trials(reading, TrialRole.SUBJECT), cells, where, more, _seed(reading), end)
    return text("{}: {}, each once in {}{}, in random order ({}){}", *parts)


def _measured(reading: StudyResults) -> Text:
    """Return when and with what the study was measured."""
    first = reading.runs[0]
    on = Figure(first.started_unix_ns, day, "/runs/0/started_unix_ns")
    several = len(reading.runs) > 1
    runs = text(", in {} runs", Figure(len(reading.runs), count, "/runs")) if several else ""
    known = first.prony_version != "unknown"
    by = text(" with Prony {}", Name(first.prony_version)) if known else ""
    return text("Measured on {}{}{}.", on, by, runs)


def differences(reading: StudyResults) -> Section | None:
    """Return how the study differs from the experiment that it repeats, or what it says of itself if it
    repeats none.
    """
    every = enumerate(reading.plan.notes)
    notes = tuple(("", text("{}", Quote(note, pointer("plan", "notes", k)))) for k, note in every)
    title = "Where it differs from what it repeats" if reading.plan.source else "About this study"
    return Section(title, (Notes(notes),)) if notes else None


def _source(reading: StudyResults) -> Text:
    plan = reading.plan
    points = counted(Figure(len(plan.notes), count, "/plan/notes"), "point")
    below = text(" It differs in {}: see the list.", points) if plan.notes else ""
    return text("Repeats {}.{}", Quote(plan.source, "/plan/source"), below)


def warnings(reading: StudyResults) -> tuple[Block, ...]:
    """Return what must be known before any figure is read, beside a limit of the generator."""
    mixed = (Paragraph(words, Tone.WARNING) for words in disagreements(reading))
    return (*_forced(reading), *_too_few(reading), *_interrupted(reading), *mixed)


def measured_words(reading: StudyResults, brief: Brief, where: str) -> Text:
    """Return what the short report's table shows, on what machine, and when. ``where``: one finds several."""
    under = group_heading(brief.group, brief.place)
    number = Figure(
        reading.count(TrialRole.SUBJECT), count, pointer("extent", "trials", TrialRole.SUBJECT.value)
    )
    # Of a published study it matters how much of it was measured.
    how = text("profile {}", Name(reading.plan.profile)) if reading.plan.source else "random order"
    more = joined((_of_sessions(reading), _rounds(reading)), by="")
    trials = text("{} in {}{}, {}", counted(number, "trial"), _blocks(reading), more, how)
    on = Figure(reading.runs[0].started_unix_ns, day, "/runs/0/started_unix_ns") if reading.runs else EMPTY
    several = _machines(reading)
    machine = text("{} (listed {})", several, where) if several else machine_words(reading.fingerprint)
    parts: tuple[Part, ...] = (under, trials, machine, on)
    return text("{}.", joined((part for part in parts if part), by="; "))


def _machines(reading: StudyResults) -> Text | None:
    """Return how many machines the sessions were on, where these are several; else None."""
    return None if reading.across is None else machines_words(reading.across, "/across")


def _of_sessions(reading: StudyResults) -> Text:
    """Return of how many sessions the blocks are, where these are several."""
    if reading.sessions == 1:
        return EMPTY
    return text(" of {}", counted(Figure(reading.sessions, count, "/extent/sessions"), "session"))


def head(reading: StudyResults) -> Section:
    """Return the head; its first lines warn of a generator that was the limit, and of too few blocks."""
    plan = reading.plan
    blocks = [*_limited(reading), *warnings(reading)]
    if plan.question:
        blocks.append(Paragraph(text("{}", Quote(plan.question, "/plan/question"))))
    if plan.source:
        blocks.append(Paragraph(_source(reading)))
    facts = [text("{}, {} profile. {}", Name(plan.name), Name(plan.profile), _order(reading))]
    facts += [text("{}.", words) for words in agreed_notes(reading)]
    several = _machines(reading)
    one = text("Machine: {}.", machine_words(reading.fingerprint))
    facts.append(text("Measured on {}: see Sessions.", several) if several else one)
    if reading.runs:
        facts.append(_measured(reading))
    blocks += [Paragraph(fact, Tone.QUIET) for fact in facts]
    return Section("", (*blocks, *_stopped(reading)))

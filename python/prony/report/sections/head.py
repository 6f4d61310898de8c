"""The head of a report: what was asked, on which machine, and whether it is enough for verdicts."""

from datetime import UTC, datetime

from prony.analysis.compare import LEAST_BLOCKS
from prony.model import RunStatus, TrialRole
from prony.reading.study import Reading
from prony.report.document import Block, Notes, Paragraph, Section, Tone
from prony.report.sections.rates import is_search
from prony.report.words import count_words, machine_words

__all__ = ["differences", "head"]


def _blocks(count: int) -> str:
    return count_words(count, "block")


def _too_few(reading: Reading) -> tuple[Block, ...]:
    count = reading.blocks
    if count >= LEAST_BLOCKS or is_search(reading):
        return ()
    be = "is" if count == 1 else "are"
    need = f"they need {LEAST_BLOCKS}, and 10 are better: the same command with --repeats 10."
    return (Paragraph(f"{_blocks(count)} {be} too few for verdicts: {need}", Tone.WARNING),)


def _forced(reading: Reading) -> tuple[Block, ...]:
    """Return why the figures may not be valid, where they were measured all the same."""
    said = "; ".join(dict.fromkeys(one for run in reading.runs for one in run.fingerprint.forced))
    if not said:
        return ()
    return (Paragraph(f"Measured by --force, and refused without it: {said}", Tone.BAD),)


def _interrupted(reading: Reading) -> tuple[Block, ...]:
    if all(run.status is not RunStatus.INTERRUPTED for run in reading.runs[-1:]):
        return ()
    text = "The last run was interrupted: the figures are of the trials before."
    return (Paragraph(text, Tone.WARNING),)


def _stopped(reading: Reading) -> tuple[Block, ...]:
    """Return the rule that ended a study of no fixed number of blocks."""
    told = [run.facts.stopped for run in reading.runs]
    found = next((one for one in reversed(told) if one is not None), None)
    if found is None:
        return ()
    where = f"Stopped after {_blocks(found.blocks)}: {found.words}."
    return (Paragraph(where, Tone.QUIET),)


def _order(reading: Reading) -> str:
    """Return in which order the trials were run."""
    cells, blocks = len(reading.plan.cells), reading.blocks
    trials = [trial for trial in reading.trials if trial.role is TrialRole.SUBJECT]
    searched = [trial for trial in reading.trials if trial.role is TrialRole.FIND_RATE]
    if searched and not trials:
        return f"{count_words(len(searched), 'trial')} of a search (seed {reading.plan.seed})."
    if not trials:
        return "No trial was run."
    calibrated = any(trial.role is TrialRole.CALIBRATION for trial in reading.trials)
    text = f"{count_words(len(trials), 'trial')}: {count_words(cells, 'cell')}, each once in "
    text += "its block" if blocks == 1 else f"each of {_blocks(blocks)}"
    text += f", in random order (seed {reading.plan.seed})"
    return f"{text}, with a calibration before, after and within." if calibrated else f"{text}."


def _measured(reading: Reading) -> str:
    """Return when and with what the study was measured."""
    first = reading.runs[0]
    day = datetime.fromtimestamp(first.started_unix_ns // 10**9, tz=UTC).date().isoformat()
    runs = f", in {len(reading.runs)} runs" if len(reading.runs) > 1 else ""
    by = "" if first.prony_version == "unknown" else f" with Prony {first.prony_version}"
    return f"Measured on {day}{by}{runs}."


def differences(reading: Reading) -> Section | None:
    """Return in what the study is not as the experiment that it repeats."""
    told = tuple(("", note) for note in reading.plan.notes)
    return Section("Where it differs from what it repeats", (Notes(told),)) if told else None


def head(reading: Reading) -> Section:
    """Return the head; its first line says when there are too few blocks for verdicts."""
    plan = reading.plan
    blocks = [*_forced(reading), *_too_few(reading), *_interrupted(reading)]
    if plan.question:
        blocks.append(Paragraph(plan.question))
    if plan.source:
        points = count_words(len(plan.notes), "point")
        below = f" It differs in {points}, told below." if plan.notes else ""
        blocks.append(Paragraph(f"Repeats {plan.source}.{below}"))
    facts = [f"{plan.name}, {plan.profile} profile. {_order(reading)}"]
    facts.append(f"Machine: {machine_words(reading.fingerprint)}.")
    if reading.runs:
        facts.append(_measured(reading))
    blocks += [Paragraph(fact, Tone.QUIET) for fact in facts]
    return Section("", (*blocks, *_stopped(reading)))

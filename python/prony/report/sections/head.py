"""The head of a report: what was asked, on which machine, and whether it is enough for verdicts."""

from prony.analysis.compare import LEAST_BLOCKS
from prony.archive import RunStatus
from prony.report.document import Block, Paragraph, Section, Tone
from prony.report.reading import Reading
from prony.report.words import machine_words

__all__ = ["head"]


def _blocks(count: int) -> str:
    return f"{count} block{'s' if count != 1 else ''}"


def _too_few(reading: Reading) -> tuple[Block, ...]:
    count = reading.plan.blocks
    if count >= LEAST_BLOCKS:
        return ()
    be = "is" if count == 1 else "are"
    need = f"they need {LEAST_BLOCKS}, and 10 are better: the same command with --repeats 10."
    return (Paragraph(f"{_blocks(count)} {be} too few for verdicts: {need}", Tone.WARNING),)


def _forced(reading: Reading) -> tuple[Block, ...]:
    """Return why the figures cannot be valid, where they were measured all the same."""
    told = [run.fingerprint.get("forced") for run in reading.runs]
    said = "; ".join(dict.fromkeys(str(one) for found in told if isinstance(found, list) for one in found))
    if not said:
        return ()
    return (Paragraph(f"Measured by --force on a machine that cannot give valid figures: {said}", Tone.BAD),)


def head(reading: Reading) -> Section:
    """Return the head; its first line says when there are too few blocks for verdicts."""
    plan = reading.plan
    facts = f"{plan.name}: {plan.profile} profile, {_blocks(plan.blocks)}, seed {plan.seed}"
    if len(reading.runs) > 1:
        facts += f", {len(reading.runs)} runs"
    blocks = [*_forced(reading), *_too_few(reading)]
    if any(run.status is RunStatus.INTERRUPTED for run in reading.runs[-1:]):
        blocks.append(
            Paragraph("The last run was interrupted: the figures are of the trials before.", Tone.WARNING)
        )
    if plan.question:
        blocks.append(Paragraph(plan.question))
    return Section(
        "", (*blocks, Paragraph(facts, Tone.QUIET), Paragraph(machine_words(reading.fingerprint), Tone.QUIET))
    )

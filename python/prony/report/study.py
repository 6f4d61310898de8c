"""A study's report: the tables, what went wrong and why, and the answer as its last lines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from prony.analysis.answer import Answer
from prony.analysis.compare import LEAST_BLOCKS, Comparison, Verdict
from prony.analysis.summary import CellSummary, Estimate, TrialFigures
from prony.archive import Archive, RunStatus
from prony.metrics import METRICS, format_metric
from prony.model import ClosedLoop, Failed, Invalid
from prony.report.document import (
    Block,
    Command,
    Document,
    Footnotes,
    Notes,
    Paragraph,
    Section,
    Tone,
)
from prony.report.reading import Found, Group, Reading, read_archive
from prony.report.tables import failures_table, populations_table, ranked, subjects_table
from prony.report.words import machine_words, signed_percent
from prony.units import format_bytes

__all__ = ["reading_document", "study_document"]

_LOG_LINES = 8
_TRACEBACK_LINES = 6
# How the traceback of an exception ends, perhaps in colour: `ModuleNotFoundError: No module named 'flask'`.
_EXCEPTION = re.compile(r"^(?:\x1b\[[\d;]*m)*\w[\w.]*(Error|Exception|Exit|Interrupt)\b")

# More than this nobody runs, and the number is itself a guess from a few blocks.
_MOST_BLOCKS = 100


# --- the head ---------------------------------------------------------------------------------------------


def _blocks(count: int) -> str:
    return f"{count} block{'s' if count != 1 else ''}"


def _too_few(reading: Reading) -> tuple[Block, ...]:
    count = reading.plan.blocks
    if count >= LEAST_BLOCKS:
        return ()
    be = "is" if count == 1 else "are"
    need = f"they need {LEAST_BLOCKS}, and 10 are better: the same command with --repeats 10."
    return (Paragraph(f"{_blocks(count)} {be} too few for verdicts: {need}", Tone.WARNING),)


def _head(reading: Reading) -> Section:
    plan = reading.plan
    facts = f"{plan.name}: {plan.profile} profile, {_blocks(plan.blocks)}, seed {plan.seed}"
    if len(reading.runs) > 1:
        facts += f", {len(reading.runs)} runs"
    blocks = list(_too_few(reading))
    if any(run.status is RunStatus.INTERRUPTED for run in reading.runs[-1:]):
        blocks.append(
            Paragraph("The last run was interrupted: the figures are of the trials before.", Tone.WARNING)
        )
    if plan.question:
        blocks.append(Paragraph(plan.question))
    return Section(
        "", (*blocks, Paragraph(facts, Tone.QUIET), Paragraph(machine_words(reading.fingerprint), Tone.QUIET))
    )


# --- the tables -------------------------------------------------------------------------------------------


def _best(found: Answer) -> tuple[str, ...]:
    return () if found.leader is None else (found.leader, *found.ties)


def _group_heading(group: Group) -> str:
    text = group.workload.describe()
    return text[0].upper() + text[1:]


def _group_section(group: Group) -> Section:
    notes = Footnotes()
    cells = ranked(group.cells, group.answer.metric)
    if not cells:
        return Section(_group_heading(group), (Paragraph("No trial was run."),))
    if not any(cell.ok for cell in cells):
        return Section(_group_heading(group), (Paragraph("No trial counts.", Tone.BAD),))
    blocks: list[Block] = []
    if isinstance(group.workload.loop, ClosedLoop):
        blocks.append(
            Paragraph(
                "The load is as high as each server takes: latencies are those at saturation, "
                "and compare servers under different loads.",
                Tone.QUIET,
            )
        )
    blocks.append(subjects_table(cells, _best(group.answer), notes))
    return Section(_group_heading(group), (*blocks, notes.notes()))


def _failure_sections(group: Group) -> Iterator[Section]:
    cells = ranked(group.cells, group.answer.metric)
    failures = failures_table(cells) if cells else None
    if failures is None:
        return
    yield Section("Requests that failed, by kind", (failures,))
    notes = Footnotes()
    if (both := populations_table(cells, notes)) is not None:
        yield Section("With and without the failures", (both, notes.notes()))


# --- what did not count -----------------------------------------------------------------------------------


def _outcome_words(trial: TrialFigures) -> str:
    match trial.outcome:
        case Failed(stage, reason):
            return f"failed at {stage}: {reason}"
        case Invalid(reason):
            return f"not valid: {reason}"
        case _:
            return "ok"


def _telling_lines(text: str) -> list[str]:
    """Return the lines of a log that tell why: the end of its last traceback and the last line, else the
    last lines.

    What a server writes after a traceback, on its way down, says only that it goes down.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    ends = [index for index, line in enumerate(lines) if _EXCEPTION.match(line)]
    if not ends or ends[-1] >= len(lines) - 1:
        return lines[-(_TRACEBACK_LINES + 1 if ends else _LOG_LINES) :]
    first = max(0, ends[-1] - _TRACEBACK_LINES)
    return [*lines[first : ends[-1] + 1], lines[-1]]


def _block_words(blocks: Sequence[int]) -> str:
    """Return which blocks, counted from 1.

    >>> _block_words([0, 1, 2, 4])
    'blocks 1 to 3, 5'
    """
    runs: list[list[int]] = []
    for block in sorted(blocks):
        if runs and block == runs[-1][-1] + 1:
            runs[-1].append(block)
        else:
            runs.append([block])
    words = [f"{run[0] + 1} to {run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in runs]
    return f"block{'s' if len(blocks) > 1 else ''} {', '.join(words)}"


def _failed_alike(cell: CellSummary) -> Iterable[list[TrialFigures]]:
    alike: dict[str, list[TrialFigures]] = {}
    for trial in cell.others:
        alike.setdefault(_outcome_words(trial), []).append(trial)
    return alike.values()


def _uncounted(reading: Reading) -> Section | None:
    blocks: list[Block] = []
    for group in reading.groups:
        for cell in group.cells:
            for trials in _failed_alike(cell):
                where = _block_words([trial.block for trial in trials])
                text = f"{cell.cell.subject.name}, {where}: {_outcome_words(trials[0])}"
                lines = _telling_lines(trials[0].log.text)
                blocks += [Paragraph(text), Notes(tuple(("  |", line) for line in lines))]
    return Section("Trials that do not count", tuple(blocks)) if blocks else None


def _unavailable(reading: Reading) -> Section | None:
    reasons = {record.name: record.unavailable for record in reading.subjects.values() if record.unavailable}
    for group in reading.groups:
        for cell in group.cells:
            if not cell.total:
                reasons.setdefault(cell.cell.subject.name, "no trial was run")
    items = tuple(("", f"{name}: {reason}") for name, reason in reasons.items())
    return Section("Not measured", (Notes(items),)) if items else None


def _versions(reading: Reading) -> Iterator[str]:
    servers = {subject.name: subject.server for subject in reading.plan.subjects()}
    records = reading.subjects.items()
    measured = [record for _, record in records if record.server_version]
    on = {record.interpreter or "" for record in measured if record.interpreter != record.server_version}
    known: dict[str, str] = {}
    remarks: dict[str, str] = {}
    for name, record in records:
        remarks |= record.facts.get("remarks") or {}
        known |= {
            service: version for service, version in (record.facts.get("services") or {}).items() if version
        }
        front = record.facts.get("frontend")
        if front and front["version"]:
            known[str(front["name"]).partition("-")[0]] = front["version"]
        if record.server_version:
            # One interpreter for all is told once.
            other = len(on) > 1 and record.interpreter not in (None, "", record.server_version)
            known[servers.get(name, name)] = record.server_version + (
                f" on {record.interpreter}" if other else ""
            )
    if known:
        alike = f", on {next(iter(on))}" if len(on) == 1 and "" not in on else ""
        yield (
            "Versions: " + ", ".join(f"{server} {version}" for server, version in known.items()) + f"{alike}."
        )
    for server, remark in remarks.items():
        yield f"{server}: {remark}."


# --- notes ------------------------------------------------------------------------------------------------


def _finding_notes(reading: Reading) -> Iterator[str]:
    advised: set[str | None] = {None}
    ran = {cell.cell.subject.name for group in reading.groups for cell in group.cells if cell.total}
    for alike in _alike(reading.findings):
        finding, of = alike[0].finding, sum(found.of for found in alike)
        often = f" ({sum(found.trials for found in alike)} of {of} trials)" if of > 1 else ""
        advice = "" if finding.advice in advised else f" Advice: {finding.advice}."
        advised.add(finding.advice)
        yield f"{_whose(alike, ran)}: {_said(alike)}{often}.{advice}"


def _alike(findings: Iterable[Found]) -> Iterable[list[Found]]:
    """Return the findings that say the same of several subjects together, in the order of the first."""
    together: dict[tuple[str, str], list[Found]] = {}
    for found in findings:
        said = found.finding.shared or found.finding.sentence
        together.setdefault((found.finding.rule, said), []).append(found)
    return together.values()


def _said(alike: Sequence[Found]) -> str:
    finding = alike[0].finding
    return (finding.shared or finding.sentence) if len(alike) > 1 else finding.sentence


def _whose(alike: Sequence[Found], ran: Set[str]) -> str:
    names = [found.subject for found in alike]
    return "all subjects" if len(names) > 1 and ran <= set(names) else ", ".join(names)


def _cpus(cpus: tuple[int, ...]) -> str:
    return f"CPU{'s' if len(cpus) != 1 else ''} {', '.join(map(str, cpus))}"


def _sandbox_notes(reading: Reading) -> Iterator[str]:
    networks = {
        str(record.sandbox["network"])
        for record in reading.subjects.values()
        if record.sandbox.get("network")
    }
    if "host" in networks:
        yield "Servers ran on the host's loopback: sockets left by one trial may be met by the next."
    elif networks:
        yield "Each trial ran in a network namespace of its own, server and generator together."
    if len(reading.placements) == 1:
        placement = reading.placements[0]
        if placement.shared:
            yield f"Server and generator shared {_cpus(placement.server_cpus)}: they slow each other."
        else:
            yield f"Server on {_cpus(placement.server_cpus)}, generator on {_cpus(placement.generator_cpus)}."
    yield from _limit_notes(reading)
    yield "CPU: 100 % is one core; on loopback, part of the network work is billed to the generator."


def _limit_notes(reading: Reading) -> Iterator[str]:
    """Say what the server was limited to, and how far each limit holds on that machine."""
    choices = {group.sandbox for group in reading.groups if group.sandbox.kind == "cgroup"}
    if len(choices) != 1:
        return
    (choice,) = choices
    records = reading.subjects.values()
    states: Mapping[str, str] = next((one.sandbox["limits"] for one in records if one.sandbox), {})
    told = {
        "cpu_quota": None if choice.cpu_quota is None else f"{choice.cpu_quota:g} CPUs",
        "memory": None if choice.memory_bytes is None else f"{format_bytes(choice.memory_bytes)} of memory",
        "pids": None if choice.pids is None else f"{choice.pids} processes and threads",
    }
    limits = [
        f"{words} ({str(states.get(name, 'not tried')).partition(':')[0]})"
        for name, words in {"cpus": "its CPUs", **told}.items()
        if words
    ]
    yield f"The server was held by a control group to {', '.join(limits)}."


def _notes(reading: Reading) -> Section:
    items = (*_finding_notes(reading), *_versions(reading), *_sandbox_notes(reading))
    if any(cell.ok > 1 for group in reading.groups for cell in group.cells):
        items = (
            *items,
            "±: half of the 95 % interval of the mean over trials; n: trials that count of those run.",
        )
    return Section("Notes", (Notes(tuple(("", item) for item in items)),))


# --- the answer -------------------------------------------------------------------------------------------


def _figure(cell: CellSummary, metric: str) -> str:
    value = cell.metrics[metric]
    if not isinstance(value, Estimate):
        return "—"
    text = format_metric(metric, value.mean)
    if value.low is None or value.high is None:
        return f"{text} (one trial: no interval)"
    low, high = format_metric(metric, max(value.low, 0.0)), format_metric(metric, value.high)
    return f"{text} (95 % interval {low} to {high})"


def _interval(found: Comparison) -> str:
    if found.effect is None:
        return "not compared"
    text = signed_percent(found.effect)
    if found.low is None or found.high is None:
        return text
    low, high = signed_percent(found.low), signed_percent(found.high)
    return f"{text}, {100 * (1 - found.level):.3g} % interval {low} to {high}"


def _sameness(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.EQUIVALENT:
        return "equivalent"
    needed = comparison.blocks_needed
    if needed is None:
        return "not told apart from it"
    if needed > _MOST_BLOCKS:
        return "not told apart from it: too close, or too noisy, to tell"
    return f"not told apart from it, {needed} blocks would tell"


def _comparison_lines(found: Answer) -> Iterator[str]:
    for name in found.ties:
        comparison = found.comparisons[name]
        yield f"{name}: {_sameness(comparison)} ({_interval(comparison)})"
    others = [name for name in found.comparisons if name not in found.ties]
    if others:
        yield f"next: {others[0]} ({_interval(found.comparisons[others[0]])})"


def _answer_blocks(reading: Reading, group: Group) -> Iterator[Block]:
    found = group.answer
    where = f"{_group_heading(group)}: " if len(reading.groups) > 1 else ""
    if found.leader is None or found.metric is None:
        yield Paragraph(f"{where}no answer: {found.reason}.", Tone.WARNING)
        return
    cell = next(cell for cell in group.cells if cell.cell.subject.name == found.leader)
    title = METRICS[found.metric].title
    if found.decided:
        claim = (
            f"is best (n = {found.blocks})"
            if not found.ties
            else f"leads, not told apart from others (n = {found.blocks})"
        )
    else:
        claim = f"leads; too few repeats for a verdict (n = {found.blocks})"
    yield Paragraph(f"{where}{found.leader} {claim}: {title}, {_figure(cell, found.metric)}.", Tone.STRONG)
    yield Notes(tuple(("", line) for line in _comparison_lines(found)))


def _commands(reading: Reading) -> Iterator[Block]:
    """Give the command of each leader once."""
    leaders = dict.fromkeys(group.answer.leader for group in reading.groups)
    for leader in leaders:
        record = reading.subjects.get(leader or "")
        if record is None or not record.command_line:
            continue
        if len(leaders) > 1:
            yield Paragraph(f"{leader}:", Tone.QUIET)
        yield Command(record.command_line)


def reading_document(reading: Reading) -> Document:
    """Return the report of a study that has been read."""
    sections = [_head(reading)]
    for group in reading.groups:
        sections.append(_group_section(group))
        sections += _failure_sections(group)
    sections += [part for part in (_uncounted(reading), _unavailable(reading)) if part is not None]
    answers = [block for group in reading.groups for block in _answer_blocks(reading, group)]
    sections += [_notes(reading), Section("Answer", (*answers, *_commands(reading)))]
    return Document(reading.plan.title or reading.plan.name, tuple(sections))


def study_document(archive: Archive) -> Document:
    """Return the report of a study from its archive."""
    return reading_document(read_archive(archive))

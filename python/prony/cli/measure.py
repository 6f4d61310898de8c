"""Runs a study from the command line: progress, report and exit status; or shows what it would do.

The noise floors that this machine's self-tests measured, for what a study here will find.
"""

import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.patience import read_file
from prony.cli.run_checks import cpus_of, placement_of
from prony.cli.run_options import OutputOptions
from prony.cli.talk import say, show, status_of, terminate_as_interrupt
from prony.cli.variables import whole_command
from prony.core.errors import ArchiveError, ExitCode, HostError, SubjectError
from prony.core.units import format_duration, seconds
from prony.model.facts import Fingerprint, Floor
from prony.model.trial import Ok, TrialRole
from prony.plan.factors import grid_words

if TYPE_CHECKING:
    from prony.archive import Archive
    from prony.model.plan import Plan
    from prony.study import Study


def floors_of(fingerprint: Fingerprint) -> "tuple[Floor, ...]":
    """Return the stored floors of the machine with this fingerprint, often none: a user without a home and
    a cache has none, and reads all the same.
    """
    from prony.core.users import resolve_user
    from prony.study.calibration import kept_floors

    try:
        return kept_floors(resolve_user().cache, fingerprint)
    except HostError:
        return ()


def _cpus(numbers: "Sequence[int]") -> str:
    """Return CPUs in words, such as ``CPU 0`` or ``CPUs 0, 1``."""
    return f"CPU{'s' if len(numbers) != 1 else ''} {', '.join(map(str, numbers))}"


def run_and_report(task: "Study", output: OutputOptions) -> int:
    """Run the study, report it, and return the exit status; an interruption keeps finished trials."""
    from prony.cli.progress import StudyProgress
    from prony.study import run_study
    from prony.study.extent import extent_of

    extent = extent_of(task.plan, task.catalog, task.cross_checks)
    status: int = ExitCode.DONE
    # Of one that must end soon the first block's figures are the first look.
    shown_blocks = 0 if task.plan.design.length_ns is None else 1
    with terminate_as_interrupt(), StudyProgress(extent.trials[1], extent.each_s, shown_blocks) as progress:
        for words in grid_words(task.plan.subjects()):
            progress.notice(words)
        progress.notice(f"{task.plan.title}: {_before(task)}{extent}")
        if not _is_elsewhere(task):
            progress.notice(f"to go on after an interruption, type again: `{whole_command(task.out)}`")
        try:
            run_study(task, progress)
        except KeyboardInterrupt as interrupt:
            status = status_of(interrupt)
        except (SubjectError, HostError):
            with suppress(ArchiveError):  # what ended the study is the message
                _discard_without_trials(task)
            raise
    if status and _discard_without_trials(task):
        say("interrupted before the first trial ended: no figures, no archive")
        return status
    ended = end(task.out, output, status)
    if status and not _is_elsewhere(task):
        say(f"interrupted; to go on, type again: `{whole_command(task.out)}`")
    return ended


def _before(task: "Study") -> str:
    """Return what comes before the trials, in words."""
    from prony.study.extent import rough_length
    from prony.study.pilot import first_look_s

    if task.resumes:
        return "continues; total: "
    looks_s = first_look_s(task.plan)
    return f"a first look in about {rough_length(looks_s)} after the builds; then " if looks_s else ""


def _is_elsewhere(task: "Study") -> bool:
    """Return whether another machine's Prony asked for the study: nobody types it here."""
    return task.fleet is not None and task.fleet.pipe is not None


def end(out: Path, output: OutputOptions, status: int = ExitCode.DONE) -> int:
    """Report the study in ``out``, and return ``status``, or the status of its verdict."""
    _report(out, output)
    return status or _verdict(out, output.strict)


def _report(out: Path, output: OutputOptions) -> None:
    from prony.cli.options import write_output
    from prony.cli.pages import page_beside
    from prony.cli.report import report_data, show_report

    json_to = output.json_to
    page = None if output.no_html else page_beside(out)
    if json_to != "-":
        show_report(out, full=output.full)
        if output.full:
            show(f"\nArchive: {out}")
            if page is not None:
                show(f"Page: {page}")
    # Last: the archive's name is on the screen even if the file cannot be written.
    if json_to is not None:
        write_output(json.dumps(report_data(out), indent=2), json_to)


def _discard_without_trials(task: "Study") -> bool:
    """Return whether no archive has a trial; remove a new archive without any."""
    from prony.archive import open_archive, remove_unheld

    if not task.out.exists():
        return True
    with open_archive(task.out) as archive:
        is_empty = next(iter(archive.trials()), None) is None
    if is_empty and not task.resumes:
        remove_unheld(task.out)
    return is_empty


def _verdict(out: Path, strict: bool) -> int:
    """Return 3 without a valid reply; with ``strict`` also unless every trial counts and a subject qualifies,
    or every subject has a rate that most fresh trials confirm.
    """
    from prony.archive import open_archive

    with open_archive(out) as archive:
        plan = archive.plan()
        ends = _ends(archive)
        records = archive.subjects()
    missing = any(records[one.name].unavailable for one in plan.subjects() if one.name in records)
    measured = any(replies for _, replies in ends)
    passed = _all_confirmed(out) if plan.design.find_rate else all(is_ok for is_ok, _ in ends)
    qualified = plan.design.find_rate or any(cell.unqualified is None for cell in read_file(out).cells)
    if measured and (not strict or (passed and qualified and not missing)):
        return ExitCode.DONE
    return ExitCode.COULD_NOT_MEASURE


def _ends(archive: "Archive") -> list[tuple[bool, int]]:
    """Return whether each trial is ok, and its valid replies where it counts, if only as a bound; the last of
    several attempts decides.
    """
    from prony.figures.validity import disturbed_reach

    last: dict[tuple[int, int], tuple[bool, int]] = {}
    for record in archive.trials():
        trial = record.trial
        if trial.role in (TrialRole.SUBJECT, TrialRole.FIND_RATE):
            is_ok = isinstance(trial.outcome, Ok)
            counts = is_ok or disturbed_reach(trial) is not None
            replies = trial.recording.account.ok if trial.recording and counts else 0
            last[trial.cell_id, trial.block] = is_ok, replies
    return list(last.values())


def _all_confirmed(out: Path) -> bool:
    from prony.archive import open_archive

    with open_archive(out) as archive:
        found = archive.runs()[-1].facts.found_rates
    return all(one.rate_per_s is not None and 2 * one.met > one.of + one.unknown for one in found)


def dry_run(task: "Study") -> None:
    """Print subjects, commands, protocol and time, without starting anything."""
    from prony.study.assembly import command_line
    from prony.study.extent import extent_of, number_of

    plan = task.plan
    placement = placement_of(plan)
    show(
        f"{plan.title}\n"
        f"{number_of(len(plan.cells), 'cell')} x {_blocks(plan)}, seed {plan.seed}, profile {plan.profile}\n"
    )
    for words in grid_words(plan.subjects()):
        show(words)
    cpus = cpus_of(plan)
    for cell in plan.cells:
        command = command_line(task.catalog, cell.subject, cpus[cell.subject.name])
        asked = f"open loop at the rates of the search, {cell.workload.describe_request()}"
        show(f"{cell.subject.name}: {asked if plan.design.find_rate else cell.describe()}")
        show(textwrap.indent(command, "    "))
    show("")
    for line in _protocol(task):
        show(line)
    server, generator = _cpus(placement.server_cpus), _cpus(placement.generator_cpus)
    for line in _power(plan):
        show(line)
    show(f"server on {server}, generator on {generator}, sandbox {plan.cells[0].sandbox.kind}")
    for reason in task.sandbox.reasons:
        show(reason)
    show(f"{extent_of(plan, task.catalog, task.cross_checks)}, into {task.out}")


# Noise of a trial that is usual where nobody has measured it: of a quiet machine, and of a busy one.
_USUAL_NOISE = (0.02, 0.05)


def _power(plan: "Plan") -> "Iterator[str]":
    """Yield the difference that the study will find under a primary load, by the machine's noise if known."""
    from prony.figures.answer import deciding_metrics
    from prony.figures.noise_floor import floors_by_metric
    from prony.figures.statistics.compare import LEAST_BLOCKS, few_sessions
    from prony.figures.statistics.power import foreseen, spread_of_floor
    from prony.machine.fingerprint import brief_fingerprint
    from prony.study.extent import levels_to_expect, shows_by_rounds

    primary = [cell for cell in plan.cells if cell.is_under(plan.design.primary)]
    subjects = len({cell.subject.name for cell in primary})
    if subjects < 2 or plan.blocks < LEAST_BLOCKS or plan.design.find_rate:
        return
    if 1 < (sessions := plan.design.sessions) < LEAST_BLOCKS:
        yield f"{few_sessions(sessions)}: the report shows their range"
        return
    if sessions > 1:
        yield "each session counts once: what they find depends on how days differ, which is not known"
        return
    known = floors_by_metric(floors_of(brief_fingerprint()), primary[0], plan.blocks)
    floor = known.get(deciding_metrics(primary[0])[0], 0.0)
    own: tuple[float, ...] = (spread_of_floor(floor, plan.blocks) / 2**0.5,) if floor else _USUAL_NOISE
    levels = levels_to_expect(plan, own[0] if floor else 0.0) if shows_by_rounds(plan) else ()
    own = tuple(hypot(*one) for one in levels) or own
    for number, noise in enumerate(own):
        low, high = foreseen(noise, subjects, plan.blocks, plan.design.margin)
        is_known = floor and not levels
        of = f"the noise of this machine ({100 * noise:.1f} % in a trial)" if is_known else _usual(noise)
        if levels:
            between, within = (100 * one for one in levels[number])
            of += f" ({between:.2g} % from start to start, {within:.2g} % within one)"
        found = f"{100 * low:.0f} %, or {100 * high:.0f} % where one trial in twenty is far off"
        yield f"with {of}, {plan.blocks} blocks find a difference of {found}, nine times in ten"


def _usual(noise: float) -> str:
    return f"noise of {100 * noise:.2g} % in a trial"


def _blocks(plan: "Plan") -> str:
    from prony.study.extent import number_of

    precision = plan.design.precision
    if precision is None or len(precision.looks) == 1:
        about = "" if plan.design.length_ns is None else "about "
        return f"{about}{number_of(plan.blocks, 'block')}"
    return f"{precision.looks[0]} to {precision.looks[-1]} blocks"


def _pilot(plan: "Plan") -> "Iterator[str]":
    """Yield how long the pilot takes before the first block, where there is one."""
    from prony.study.extent import number_of, pilot_seconds, rough_length
    from prony.study.pilot import piloted

    cells, longest_ns = piloted(plan), plan.design.pilot_ns
    if not cells or longest_ns is None:
        return
    least, most = pilot_seconds(plan)
    length = f"about {rough_length(least)}, at most {rough_length(most)}"
    yield f"pilot before the first block: {number_of(len(cells), 'cell')} from a fresh start, {length};"
    yield f"a server that is not warm by then gets a longer warm-up, up to {format_duration(longest_ns)}"


def _protocol(task: "Study") -> "Iterator[str]":
    """Yield the steps besides measuring each cell once in each block."""
    from prony.model.workload import OpenLoop
    from prony.study.admission import left_out_words, to_leave_out
    from prony.study.extent import number_of, rough_length

    plan, precision = task.plan, task.plan.design.precision
    if any(isinstance(cell.workload.loop, OpenLoop) for cell in plan.cells) or plan.design.find_rate:
        yield f"{plan.cells[0].engine.pacing} pacing of the generator at every rate"
    is_whole = plan.whole_blocks == plan.blocks
    each = "each block" if is_whole else f"each of the first {plan.whole_blocks} blocks"
    if plan.calibration is not None:
        load = plan.calibration.workload.describe()
        yield f"calibration, first, last and once inside {each}: the reference server, {load}"
    absent = to_leave_out((*plan.cells, *task.cross_checks), task.catalog)
    checks = [cell.engine.name for cell in task.cross_checks if cell.id not in absent]
    for name, count in Counter(checks).items():
        yield f"cross-check: {number_of(count, 'cell')} measured again in {each} by {name}"
    yield from left_out_words((*plan.cells, *task.cross_checks), absent)
    if plan.design.find_rate:
        yield f"for each subject a search for the highest rate at which {plan.design.find_rate}"
        yield f"and {number_of(plan.blocks, 'fresh trial')} at the rate that it finds"
    yield from _pilot(plan)
    if plan.design.rounds:
        rounds = number_of(plan.design.rounds, "round")
        yield f"after the trials of each block {rounds}: all servers started together, each in turn for 0.5 s"
        if not is_whole:
            yield f"from block {plan.whole_blocks + 1} on rounds alone: throughput and CPU, no latencies"
        yield f"{plan.whole_blocks + plan.blocks} starts of each server in all"
    if plan.design.confirm:
        looks = " and ".join(plan.design.confirm)
        yield f"after the last block a close look at each cell ({looks}), which counts for no figure"
    if plan.design.sessions > 1:
        pause = format_duration(plan.design.pause_ns)
        blocks = number_of(plan.session_blocks, "block")
        yield f"{plan.design.sessions} sessions of {blocks}, {pause} apart"
    if precision is not None:
        looks = ", ".join(map(str, precision.looks))
        budget = f", or {rough_length(seconds(precision.budget_ns))} are over" if precision.budget_ns else ""
        target = f"±{100 * precision.target:g} %"
        yield f"looks after {looks} blocks, until intervals of {target} or verdicts{budget}"

"""Runs a study from the command line: progress, report and exit status; or tells what it would do."""

import json
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prony.errors import ExitCode, SubjectError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prony.model import Placement, Plan, Trial
    from prony.study import Study

__all__ = ["Ending", "dry_run", "measure", "placement_of"]

# How long a trial takes besides its load: start, contract, drain, stop. Only for the estimate before the
# first trial is over.
TRIAL_OVERHEAD_S = 2.5


@dataclass(frozen=True, slots=True)
class Ending:
    """What is wanted at the end. ``json_to``: a file or ``-``, null: text; ``strict``: see `_verdict`."""

    json_to: str | None = None
    strict: bool = False


def _trial_s(plan: "Plan") -> float:
    """Return the expected length of a trial, in seconds, averaged over the cells."""
    from prony.model import DurationStop

    lengths = [
        (cell.workload.warmup_ns + cell.workload.stop.duration_ns) / 1e9
        for cell in plan.cells
        if isinstance(cell.workload.stop, DurationStop)
    ]
    return sum(lengths) / max(1, len(lengths)) + TRIAL_OVERHEAD_S


def _extent(plan: "Plan") -> str:
    """Return how much there is to do, such as ``24 trials, about 3 min``."""
    trials = len(plan.cells) * plan.blocks
    expected_s = trials * _trial_s(plan)
    length = f"{expected_s:.0f} s" if expected_s < 90 else f"{expected_s / 60:.0f} min"
    return f"{_counted(trials, 'trial')}, about {length}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _cpus(numbers: "Sequence[int]") -> str:
    """Return CPUs in words, such as ``CPU 0`` or ``CPUs 0, 1``."""
    return f"CPU{'s' if len(numbers) != 1 else ''} {', '.join(map(str, numbers))}"


def placement_of(plan: "Plan") -> "Placement":
    """Return the CPUs of server and generator.

    *Errors*: HostError when there are too few.
    """
    from prony.host import available_cpus
    from prony.sandbox.placement import place_in

    first = plan.cells[0]
    return place_in(first.sandbox, available_cpus(), first.engine.threads)


def measure(task: "Study", ending: Ending) -> int:
    """Run the study, report it, and return the exit status; an interruption keeps what was finished."""
    from prony.cli.interrupt import Terminated, terminate_as_interrupt
    from prony.cli.progress import StudyProgress
    from prony.study import run_study

    trials = len(task.plan.cells) * task.plan.blocks
    status: int = ExitCode.DONE
    with terminate_as_interrupt(), StudyProgress(trials, _trial_s(task.plan)) as progress:
        progress.notice(f"{task.plan.title}: {_extent(task.plan)}")
        try:
            run_study(task, progress)
        except KeyboardInterrupt as interrupt:
            status = ExitCode.TERMINATED if isinstance(interrupt, Terminated) else ExitCode.INTERRUPTED
        except SubjectError:
            _discard_without_trials(task.out)
            raise
    if status and _discard_without_trials(task.out):
        typer.echo("interrupted before the first trial ended: nothing measured, no archive written", err=True)
        return status
    _report(task.out, ending.json_to)
    return status or _verdict(task.out, ending.strict)


def _report(out: Path, json_to: str | None) -> None:
    from prony.cli.options import write_output
    from prony.cli.report import report_data, show_report

    if json_to != "-":
        show_report(out)
        typer.echo(f"\nArchive: {out}   (prony report {shlex.quote(str(out))})")
    # Last: the archive has been named if the file cannot be written after all.
    if json_to is not None:
        write_output(json.dumps(report_data(out), indent=2), json_to)


def _discard_without_trials(out: Path) -> bool:
    """Return whether there is no archive with a trial; one without any tells nothing and is removed."""
    from prony.archive import open_archive

    if not out.exists():
        return True
    with open_archive(out) as archive:
        is_empty = next(iter(archive.trials()), None) is None
    if is_empty:
        out.unlink()
    return is_empty


def _verdict(out: Path, strict: bool) -> int:
    """No valid reply is no measurement; with ``strict``, every trial must count and a subject qualify."""
    from prony.archive import open_archive
    from prony.model import Ok, TrialRole

    with open_archive(out) as archive:
        trials = (record.trial for record in archive.trials())
        ends = [
            (isinstance(trial.outcome, Ok), _valid_replies(trial))
            for trial in trials
            if trial.role is TrialRole.SUBJECT
        ]
        is_complete = not any(record.unavailable for record in archive.subjects().values())
    measured = any(counts and replies for counts, replies in ends)
    is_complete = is_complete and all(counts for counts, _ in ends)
    passed = measured and (not strict or (is_complete and _has_qualified(out)))
    return ExitCode.DONE if passed else ExitCode.COULD_NOT_MEASURE


def _valid_replies(trial: "Trial") -> int:
    return int(trial.recording["account"]["ok"]) if trial.recording else 0


def _has_qualified(out: Path) -> bool:
    from prony.archive import open_archive
    from prony.report.reading import read_archive

    with open_archive(out) as archive:
        groups = read_archive(archive).groups
    return any(cell.unqualified is None for group in groups for cell in group.cells)


def dry_run(task: "Study") -> None:
    """Print subjects, commands and time, and start nothing."""
    from prony.assembly import command_line

    plan = task.plan
    placement = placement_of(plan)
    typer.echo(
        f"{plan.title}\n"
        f"{_counted(len(plan.cells), 'cell')} x {_counted(plan.blocks, 'block')}, "
        f"seed {plan.seed}, profile {plan.profile}\n"
    )
    for cell in plan.cells:
        command = command_line(task.catalog, cell.subject, len(placement.server_cpus))
        request = cell.workload.request
        typer.echo(f"{cell.subject.name}: {cell.workload.describe()}, {request.method} {request.path}")
        typer.echo(textwrap.indent(command, "    "))
    server, generator = _cpus(placement.server_cpus), _cpus(placement.generator_cpus)
    kind = plan.cells[0].sandbox.kind
    typer.echo(f"\nserver on {server}, generator on {generator}, sandbox {kind}")
    for reason in task.sandbox.reasons:
        typer.echo(reason)
    typer.echo(f"{_extent(plan)}, into {task.out}")

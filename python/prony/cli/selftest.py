"""``prony selftest``: does the procedure find differences where there are none, and how large a one?"""

import json
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.options import MAX_SEED, duration_of
from prony.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from prony.catalog.loader import Catalog
    from prony.model import Plan
    from prony.plan import PlanOptions
    from prony.study import Study

__all__ = ["EPILOG", "Kind", "selftest"]

EPILOG = """\
Examples:

  prony selftest aa                                   the reference server against itself: about 2 min

  prony selftest aa --server gunicorn --repeats 20    a server of yours, and floors for up to 20 blocks

  prony selftest aa --repeats 295                     59 real studies, the least that show 5 %

  prony selftest aa study.prony                       the labels of an archive, permuted within its blocks
"""

_CONNECTIONS = 10


class Kind(StrEnum):
    """What is tested."""

    AA = "aa"


def selftest(
    kind: Annotated[Kind, typer.Argument(help="aa: the same subject under two names.")],
    file: Annotated[
        Path | None, typer.Argument(help="An archive to read; without one, trials are run.")
    ] = None,
    server: Annotated[str, typer.Option(help="The server that is compared with itself.")] = "reference",
    app: Annotated[str, typer.Option(help="The built-in app that it serves.")] = "hello",
    repeats: Annotated[int, typer.Option(min=5, max=10_000, help="Blocks; each has two trials.")] = 10,
    connections: Annotated[
        int, typer.Option("-c", "--connections", min=1, max=10_000, help="Connections of the closed loop.")
    ] = _CONNECTIONS,
    duration: Annotated[str, typer.Option(help="Length of a trial's window.")] = "3s",
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the random order.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="The archive to write (selftest-aa-DATE.prony here).")
    ] = None,
    run_as: Annotated[
        str | None, typer.Option(help="The user that servers run as, when Prony is root.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Count false verdicts where there is no difference, and keep this machine's noise floor for reports."""
    if file is not None:
        return _told(file, run_as, as_json=as_json)
    from prony.catalog.loader import load_catalog
    from prony.cli.sandbox_options import SandboxKind, SandboxOptions, chosen_sandbox
    from prony.plan import PlanOptions
    from prony.runas import resolve_user
    from prony.study import Study

    chosen = chosen_sandbox(
        SandboxOptions(SandboxKind.AUTO, None, None, None, None, False, run_as), own_app=False
    )
    known = load_catalog(())
    options = PlanOptions(seed=seed, sandbox=chosen.choice)
    load = {"loop": "closed", "connections": connections}
    profile = {"blocks": repeats, "duration": duration_of("--duration", duration), "warmup": 1_000_000_000}
    plan = _twice(server, app, load, profile, known, options)
    target = out or Path(f"selftest-{kind}-{time.strftime('%Y%m%d-%H%M%S')}.prony")
    if target.exists():
        raise UsageError(f"`{target}` exists already", hint="name another file with `--out`")
    status = _run(Study(plan, known, resolve_user(run_as), target, sandbox=chosen))
    return status or _told(target, run_as, as_json=as_json)


def _twice(
    server: str,
    app: str,
    load: Mapping[str, object],
    profile: Mapping[str, object],
    known: "Catalog",
    options: "PlanOptions",
) -> "Plan":
    """Return the plan of one subject under two names: all else is the same, and drawn anew for each."""
    from prony.plan import make_plan
    from prony.study_document import StudyDocument

    document = StudyDocument.model_validate(
        {
            "name": "selftest-aa",
            "title": f"{server} against itself",
            "subjects": [{"server": server, "app": app}],
            "workloads": [load],
            "profiles": {"quick": profile},
        }
    )
    plan = make_plan(document, shlex.join(["prony", *sys.argv[1:]]), known, options)
    (cell,) = plan.cells
    subjects = [replace(cell.subject, name=f"{cell.subject.name} ({label})") for label in "AB"]
    return replace(plan, cells=tuple(replace(cell, id=k, subject=one) for k, one in enumerate(subjects)))


def _run(task: "Study") -> int:
    """Run the study; what was finished before an interruption is read all the same."""
    from prony.cli.extent import extent_of
    from prony.cli.interrupt import Terminated, terminate_as_interrupt
    from prony.cli.progress import StudyProgress
    from prony.study import run_study

    extent = extent_of(task.plan, task.cross_checks)
    with terminate_as_interrupt(), StudyProgress(extent.trials[1], extent.each_s) as progress:
        progress.notice(f"{task.plan.title}: {extent}")
        try:
            run_study(task, progress)
        except KeyboardInterrupt as interrupt:
            typer.echo(f"interrupted; `prony selftest aa {task.out}` reads what was finished", err=True)
            return ExitCode.TERMINATED if isinstance(interrupt, Terminated) else ExitCode.INTERRUPTED
    return ExitCode.DONE


def _told(file: Path, run_as: str | None, *, as_json: bool) -> int:
    from prony.analysis.self_tests import is_real, pairs, self_tests
    from prony.archive import open_archive
    from prony.host.noise_floors import keep_floors
    from prony.report.reading import read_archive
    from prony.report.selftest import selftest_document, selftest_json
    from prony.report.terminal import TerminalReporter
    from prony.runas import resolve_user

    with open_archive(file) as archive:
        reading = read_archive(archive)
    found = pairs([group.cells for group in reading.groups])
    if not found:
        raise UsageError(f"`{file}` has no two subjects under one load", hint="prony selftest aa")
    tests = self_tests(found)
    kept = None
    if tests and all(map(is_real, found)):
        kept = str(keep_floors(resolve_user(run_as), reading.fingerprint, [one.as_floor for one in tests]))
    if as_json:
        typer.echo(json.dumps(selftest_json(tests, kept), indent=2))
    else:
        TerminalReporter().write(selftest_document(f"Self-test: {file}", tests, kept))
    if not tests:
        return ExitCode.COULD_NOT_MEASURE
    return ExitCode.VERDICT_NEGATIVE if any(one.shown is False for one in tests) else ExitCode.DONE

"""``prony selftest``: does Prony report differences where there are none, and does it find planted ones?

The plans of ``prony selftest``: one subject in cells that are equal, or that differ in planted work.
"""

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.flat import flattened, option
from prony.cli.options import MAX_SEED, duration_of, run_as_option, write_answer
from prony.cli.patience import read_file
from prony.cli.talk import say, status_of, terminate_as_interrupt
from prony.core.errors import ExitCode, UsageError
from prony.core.units import SECOND_NS, parse_percent
from prony.core.users import resolve_user

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model.plan import Cell, Plan
    from prony.model.subject import Subject
    from prony.plan.build import PlanOptions
    from prony.reading.study import StudyResults
    from prony.study import Study


_WORK_US = 1000
"""The work of each request of the base: most of a small server's time for a request, so that the plant is
about that share of the whole.
"""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The common part of all cells: load and profile as in a study's document."""

    load: Mapping[str, object]
    profile: Mapping[str, object]
    catalog: "Catalog"
    options: "PlanOptions"


def several(server: str, app: str, names: int, same: Conditions) -> "Plan":
    """Return the plan of one subject under several names: all else is equal, and drawn again for each."""
    plan = _alone("aa", f"{server} against itself", (server, app), same)
    (cell,) = plan.cells
    labels = ascii_uppercase[:names]
    return replace(plan, cells=tuple(_named(cell, k, label) for k, label in enumerate(labels)))


def planted_plan(server: str, plants: Sequence[float], same: Conditions) -> "Plan":
    """Return the plan of one subject without added work, and with each of ``plants``, shares of its work.

    *Errors*: UsageError when the server serves several requests at once, or no fixed number.
    """
    from prony.figures.planted import APP

    title = f"{server} with planted effects"
    plan = _alone("planted", title, (server, APP), same)
    (cell,) = plan.cells
    _one_at_a_time(cell.subject, same.catalog)
    works = sorted({_WORK_US, *(round(_WORK_US * (1 + plant)) for plant in plants)})
    return replace(plan, cells=tuple(_working(cell, k, work) for k, work in enumerate(works)))


def planted_shares(text: str) -> tuple[float, ...]:
    """Return the shares of ``--plants`` (such as ``2%,5%,10%``), each once and in ascending order.

    *Errors*: UsageError for a share that is not between 0.1 % and 1000 %.
    """
    return tuple(sorted({_share(part.strip()) for part in text.split(",")}))


def _share(text: str) -> float:
    try:
        share = parse_percent(text)
    except ValueError as error:
        raise UsageError(f"`--plants {text}`: {error}", hint="such as `2%,5%,10%`") from error
    if not 0.001 <= share <= 10:
        raise UsageError(f"`--plants {text}`: expected 0.1% to 1000%", hint="such as `2%,5%,10%`")
    return share


def _alone(kind: str, title: str, subject: tuple[str, str], same: Conditions) -> "Plan":
    from prony.plan.build import make_plan
    from prony.plan.document import StudyDocument

    server, app = subject
    document = StudyDocument.model_validate(
        {
            "name": f"selftest-{kind}",
            "title": title,
            "subjects": [{"server": server, "app": app}],
            "workloads": [same.load],
            "profiles": {"quick": same.profile},
        }
    )
    return make_plan(document, shlex.join(["prony", *sys.argv[1:]]), same.catalog, same.options)


def _named(cell: "Cell", number: int, label: str) -> "Cell":
    return replace(cell, id=number, subject=replace(cell.subject, name=f"{cell.subject.name} ({label})"))


def _working(cell: "Cell", number: int, work_us: int) -> "Cell":
    """Return the cell whose requests ask for this much work; the replies are equal."""
    from prony.figures.planted import work_path

    request = replace(cell.workload.request, path=work_path(work_us))
    named = _named(cell, number, f"{work_us} us")
    return replace(named, workload=replace(cell.workload, request=request))


def _one_at_a_time(subject: "Subject", catalog: "Catalog") -> None:
    """*Errors*: UsageError when the effect of a plant on throughput would be unknown."""
    from prony.catalog.launch import declared_facts

    slots = declared_facts(catalog.server(subject.server), subject, os.cpu_count() or 1).slots
    if slots != 1:
        served = f"{slots} requests at a time" if slots else "no fixed number of requests at a time"
        raise UsageError(
            f"`{subject.name}` serves {served}: the effect of added work on its throughput is unknown",
            hint="prony selftest planted --server gunicorn",
        )


EPILOG = """\
Examples:
  prony selftest aa                                   the reference server under four names: about 4 min
  prony selftest aa --names 8 --repeats 20            the leader of eight equals, and how often one is named
  prony selftest aa --server gunicorn --repeats 20    your own server, and floors for up to 20 blocks
  prony selftest aa --repeats 295                     59 real studies, the fewest that show 5 %
  prony selftest aa study.prony                       the labels of an archive, permuted within its blocks
  prony selftest planted                              effects of 2, 5 and 10 %: about 4 min
  prony selftest planted --repeats 50 --plants 5%     how many of ten studies find the 5 %
"""

_BLOCKS, _LEAST_BLOCKS = 10, 5


class SelfTestKind(StrEnum):
    """The kind of the self-test."""

    AA = "aa"
    PLANTED = "planted"


@dataclass(frozen=True, slots=True)
class SelfTestOptions:
    """What is compared with itself, and how."""

    server: str | None = option(None, "The server to compare with itself (aa: reference; planted: gunicorn).")
    app: str | None = option(None, "The built-in app of that server (aa: hello).")
    names: int | None = option(None, "Under how many names to measure that subject (aa: 4).", min=2, max=26)
    plants: str | None = option(None, "Added work, in shares of the base's work (planted: 2%,5%,10%).")
    repeats: int = option(_BLOCKS, "Blocks; each has a trial of every cell.", min=1, max=10_000)
    connections: int = option(10, "Connections of the closed loop.", "-c", "--connections", min=1, max=10_000)
    duration: str = option("3s", "Length of a trial's window.")
    seed: int = option(1, "Seed of the random order.", min=0, max=MAX_SEED)
    out: Path | None = option(None, "The archive to write (selftest-KIND-DATE.prony here).")
    run_as: str | None = run_as_option()
    force: bool = option(False, "Use figures even if they may not be valid (planted).", "--force")
    as_json: bool = option(False, "Print JSON.", "--json")

    def check(self, kind: SelfTestKind) -> None:
        """*Errors*: UsageError for an option of another kind, and too few blocks."""
        of_aa, of_planted = {"--app": self.app, "--names": self.names}, {"--plants": self.plants}
        other = SelfTestKind.PLANTED if kind is SelfTestKind.AA else SelfTestKind.AA
        wrong = {**of_planted, "--force": self.force} if kind is SelfTestKind.AA else of_aa
        if typed := [name for name, value in wrong.items() if value]:
            raise UsageError(
                f"`{typed[0]}` only works with `prony selftest {other}`", hint="prony selftest --help"
            )
        if self.repeats < _LEAST_BLOCKS:
            raise UsageError(f"`--repeats {self.repeats}`: expected at least {_LEAST_BLOCKS}")

    def plan(self, kind: SelfTestKind, same: Conditions) -> "Plan":
        """Return the plan of the cells.

        *Errors*: UsageError for unknown names, or plants that are no shares.
        """
        if kind is SelfTestKind.AA:
            return several(self.server or "reference", self.app or "hello", self.names or 4, same)
        return planted_plan(self.server or "gunicorn", planted_shares(self.plants or "2%,5%,10%"), same)


@flattened
def selftest(
    kind: Annotated[
        SelfTestKind,
        typer.Argument(help="aa: the same subject under several names; planted: with work added."),
    ],
    asked: SelfTestOptions,
    file: Annotated[
        Path | None,
        typer.Argument(help="An archive to read; without one, Prony runs trials."),
    ] = None,
) -> int:
    """Test verdicts on cases whose truth is known.

    aa measures one subject under several names, and counts false verdicts; it keeps this machine's noise
    floor for later studies. planted adds work of a known size, and counts how often it is found.
    """
    asked.check(kind)
    if file is not None:
        return _printed(kind, file, asked)
    from prony.catalog.schema.loader import load_catalog
    from prony.cli.sandbox_options import SandboxOptions, chosen_sandbox
    from prony.plan.build import PlanOptions
    from prony.study import Study

    chosen = chosen_sandbox(SandboxOptions(run_as=asked.run_as), own_app=False)
    known = load_catalog(())
    options = PlanOptions(seed=asked.seed, sandbox=chosen.choice)
    load = {"loop": "closed", "connections": asked.connections}
    duration_ns = duration_of("--duration", asked.duration)
    profile = {"blocks": asked.repeats, "duration": duration_ns, "warmup": SECOND_NS}
    plan = asked.plan(kind, Conditions(load, profile, known, options))
    target = asked.out or Path(f"selftest-{kind}-{time.strftime('%Y%m%d-%H%M%S')}.prony")
    if target.exists():
        raise UsageError(f"`{target}` exists already", hint="name another file with `--out`")
    user = resolve_user(asked.run_as)
    status = _run(Study(plan, known, user, target, sandbox=chosen, force=asked.force))
    return status or _printed(kind, target, asked)


def _run(task: "Study") -> int:
    """Run the study; trials that finished before an interruption are still read."""
    from prony.cli.progress import StudyProgress
    from prony.study import run_study
    from prony.study.extent import extent_of

    extent = extent_of(task.plan, task.catalog, task.cross_checks)
    with terminate_as_interrupt(), StudyProgress(extent.trials[1], extent.each_s) as progress:
        progress.notice(f"{task.plan.title}: {extent}")
        try:
            run_study(task, progress)
        except KeyboardInterrupt as interrupt:
            again = f"prony {task.plan.name.replace('-', ' ')} {task.out}"
            say(f"interrupted; to read the finished trials: `{again}`")
            return status_of(interrupt)
    return ExitCode.DONE


def _printed(kind: SelfTestKind, file: Path, asked: SelfTestOptions) -> int:
    reading = read_file(file)
    json_to = "-" if asked.as_json else None
    if kind is SelfTestKind.PLANTED:
        return _planted_status(file, reading, json_to)
    return _aa_status(file, reading, asked.run_as, json_to)


def _aa_status(file: Path, reading: "StudyResults", run_as: str | None, json_to: str | None) -> int:
    from prony.figures.noise_floor import namesakes, procedures, self_tests
    from prony.figures.statistics.compare import Terms
    from prony.report.selftest import SelfTests, selftest_document
    from prony.study.calibration import keep_floors

    found = namesakes([group.cells for group in reading.groups])
    if not found:
        raise UsageError(f"`{file}` has no two subjects under one load", hint="prony selftest aa")
    tests = self_tests(found)
    drawn = procedures(found, Terms(margin=reading.plan.design.margin))
    kept = None
    if tests and all(one.is_real for one in found):
        kept = str(keep_floors(resolve_user(run_as), reading.fingerprint, [one.as_floor for one in tests]))
    shown = SelfTests(str(file), tests, drawn, kept)
    write_answer(shown, lambda: selftest_document(shown), json_to)
    if not tests:
        return ExitCode.COULD_NOT_MEASURE
    is_wrong = any(one.shown is False for one in tests) or not all(one.found.holds for one in drawn)
    return ExitCode.VERDICT_NEGATIVE if is_wrong else ExitCode.DONE


def _planted_status(file: Path, reading: "StudyResults", json_to: str | None) -> int:
    from prony.figures.planted import PlantedTests, planted
    from prony.figures.statistics.compare import Verdict
    from prony.reading.groups import terms
    from prony.report.selftest import planted_document

    found = tuple(
        one for group in reading.groups for one in planted(group.cells, partial(terms, reading.plan))
    )
    if not found:
        raise UsageError(f"`{file}` has no planted effects", hint="prony selftest planted")
    tests = PlantedTests(str(file), found)
    write_answer(tests, lambda: planted_document(str(file), found), json_to)
    if all(one.comparison.verdict is Verdict.TOO_FEW for one in found):
        return ExitCode.COULD_NOT_MEASURE
    return ExitCode.VERDICT_NEGATIVE if any(one.is_right is False for one in found) else ExitCode.DONE

"""``prony tune``: which settings, and which server, an app should run with on this machine."""

import os
import time
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from prony.cli.applicable import given
from prony.cli.flat import flattened
from prony.cli.load_options import Body, CheckOptions, Header, Method, RequestTimeout
from prony.cli.measure import cpus_of
from prony.cli.options import duration_of
from prony.cli.run import study_of
from prony.cli.run_checks import goes_on, is_complete
from prony.cli.run_options import AppOptions, LoadOptions, OutputOptions, RunOptions, SureOptions, WhatOptions
from prony.cli.sandbox_options import SandboxOptions
from prony.cli.talk import say, status_of, terminate_as_interrupt
from prony.cli.variables import refuse_masked, whole_command
from prony.errors import ExitCode, UsageError
from prony.units import SECOND_NS, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prony.analysis.objective import Condition
    from prony.reading.study import Reading
    from prony.study import Study
    from prony.tune.answer import About
    from prony.tune.race import Answer, Reply, Stage, Trials, Wish
    from prony.tune.space import Candidate, Knobs

EPILOG = """\
Examples:

  prony tune --app shop:app                                the usual server, 15 minutes

  prony tune --app shop:app --slo 'p99 < 50ms, errors < 0.1%' --memory 512M

  prony tune --app shop:app --servers gunicorn,granian     which server too

  prony tune --app shop:app --current 'gunicorn -w 4 shop:app'

  prony tune --app shop:app --rate 200 --objective cpu     the least CPU at this rate

  prony tune --app shop:app --path /=9 --path /cart=1 -c 100 --budget 30m
"""

# As many as sixteen threads in four workers answer at once.
_CONNECTIONS = "64"
# One start differs from the next by more than one second from the next: many short trials say most.
_DURATION, _LONGEST_S = "3s", 15.0
_USUAL_SLO = "errors < 0.1%"
# Of the budget; the rest is for the first request to each server of a stage, and for repeats.
_FOR_TRIALS = 0.85


class Aim(StrEnum):
    """What the best has most of, or takes least of."""

    RATE = "rate"
    CPU = "cpu"
    MEMORY = "memory"


_METRICS = {Aim.RATE: "ok_per_s", Aim.CPU: "cpu_ns_per_request", Aim.MEMORY: "pss_end"}


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """What is best, and how long it may take."""

    PANEL: ClassVar[str] = "What is best"

    slo: Annotated[str, typer.Option(help="What the settings must be shown to meet.")] = _USUAL_SLO
    objective: Annotated[
        Aim,
        typer.Option(help="The most requests per second, or the least CPU time a request, or memory."),
    ] = Aim.RATE
    current: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="How you start it today, 'gunicorn -w 4 shop:app' (the default of the first server).",
        ),
    ] = None
    budget: Annotated[str, typer.Option(help="How long it may take, without builds.")] = "15m"
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random order.")] = 1
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder of its archives (APP-tune-DATE in this folder). If it has a part of this "
            "search, the search goes on.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class TuneLoadOptions:
    """The load, as `prony run` has it."""

    PANEL: ClassVar[str] = "Load"

    connections: Annotated[
        str, typer.Option("-c", "--connections", help="Closed loop: so many connections.")
    ] = _CONNECTIONS
    rate: Annotated[
        str | None, typer.Option(help="Open loop: requests per second; for --objective cpu or memory.")
    ] = None
    duration: Annotated[
        str | None,
        typer.Option(
            help="Length of each trial's window (3s; longer where --slo has a percentile that needs it)."
        ),
    ] = None
    warmup: Annotated[str, typer.Option(help="The same load before each window.")] = "1s"
    timeout: RequestTimeout = "10s"
    path: Annotated[
        list[str] | None,
        typer.Option(help="The path to request (/); several are a mix: --path /=9 --path /cart=1."),
    ] = None
    method: Method = "GET"
    header: Header = None
    body: Body = None
    ready_timeout: Annotated[
        str | None, typer.Option(help="How long a server may take to start with your app (15s).")
    ] = None


@flattened
def tune(
    context: typer.Context,
    own: AppOptions,
    wanted: TuneOptions,
    load: TuneLoadOptions,
    check: CheckOptions,
    sandbox: SandboxOptions,
) -> int:
    """Find the settings, and the server, with which your app serves best on this machine; or keep yours."""
    from prony.catalog.schema.loader import load_catalog

    known, typed = load_catalog(()), given(context)
    _refuse(own, wanted, load)
    refuse_masked(own.env or (), load.header or ())
    conditions = _conditions(wanted.slo)
    incumbent = _current(wanted.current)
    own = replace(own, servers=_servers(own, incumbent[0] if incumbent else None))
    template = _narrowed(study_of(_as_run(typed, own, wanted, load, check, sandbox), known), own)
    return _search(template, wanted, conditions, incumbent, load.duration is not None).run()


def _search(
    template: "Study",
    wanted: TuneOptions,
    conditions: "tuple[Condition, ...]",
    current: "tuple[Candidate, tuple[str, ...]] | None",
    has_length: bool,
) -> "_Search":
    """Return the search that the options describe.

    *Errors*: UsageError for servers without settings to turn, or a budget that is too short.
    """
    from prony.study.tuning import knobs_of
    from prony.tune.race import Wish, least_trials
    from prony.tune.space import Machine

    plan, counts = template.plan, cpus_of(template.plan)
    knobs = tuple(knobs_of(one, template.catalog, counts[one.name]) for one in plan.subjects())
    if not any(one.workers or one.threads for one in knobs):
        names = ", ".join(one.server for one in knobs)
        raise UsageError(
            f"{names}: no number of workers or threads that Prony knows can be set",
            hint="`prony servers NAME` lists the settings of a server; `prony run` compares servers",
        )
    sandbox, each_s = plan.sandbox, _trial_s(template)
    cpus = sandbox.cpu_quota or max(counts.values())
    budget_s = seconds(duration_of("--budget", wanted.budget))
    wish = Wish(
        knobs=knobs,
        incumbent=_incumbent(knobs, current[0] if current else None),
        machine=Machine(cpus, sandbox.memory_bytes),
        trials=room(budget_s, each_s),
        metric=_METRICS[wanted.objective],
        higher_is_better=wanted.objective is Aim.RATE,
        conditions=(*conditions, *_of_memory(sandbox.memory_bytes)),
    )
    if wish.trials < (least := least_trials(wish)):
        needed = -int(-least * each_s / _FOR_TRIALS // 60)
        raise UsageError(
            f"`--budget {wanted.budget}`: has room for {wish.trials} trials of {each_s:.1f} s, and a search "
            f"takes at least {least}",
            hint=f"--budget {needed}m; or shorter trials with --duration and --warmup",
        )
    unread = current[1] if current else ()
    return _Search(
        template=template,
        wish=wish,
        folder=_folder(wanted.out or Path(f"{plan.name}-tune-{time.strftime('%Y%m%d-%H%M%S')}")),
        origin="yours" if current else "its default",
        budget_s=budget_s,
        trial_s=each_s,
        remarks=_before(knobs, cpus, unread),
        has_length=has_length,
    )


def _incumbent(knobs: "tuple[Knobs, ...]", current: "Candidate | None") -> "Candidate":
    """Return the settings of today, with defaults where none are typed."""
    own = next((one for one in knobs if current is not None and one.server == current.server), knobs[0])
    return own.default if current is None else current.filled(own.default)


def room(budget_s: float, trial_s: float) -> int:
    """Return how many trials of a length a budget has room for."""
    return int(_FOR_TRIALS * budget_s / trial_s)


def _folder(folder: Path) -> Path:
    """Return the folder to write archives into; refuse an impossible one before servers are installed.

    *Errors*: UsageError for a file, or where no folder can be made.
    """
    if os.path.lexists(folder) and not folder.is_dir():
        raise UsageError(f"`--out {folder}`: `{folder}` is a file; expected a folder")
    above = folder if folder.is_dir() else folder.parent
    if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise UsageError(f"`--out {folder}`: `{above}` is not a writable folder")
    return folder


def _trial_s(template: "Study") -> float:
    """Return how long one trial takes."""
    from prony.study.extent import extent_of

    return extent_of(
        replace(template.plan, cells=template.plan.cells[:1], blocks=1), template.catalog
    ).seconds[1]


def _of_memory(limit: int | None) -> "tuple[Condition, ...]":
    """Return that memory stays within the limit of the sandbox, which counts what else is in it too."""
    from prony.analysis.objective import parse_condition

    return () if limit is None else (parse_condition(f"memory < {limit}B"),)


def _before(knobs: "tuple[Knobs, ...]", cpus: float, unread: tuple[str, ...]) -> tuple[str, ...]:
    """Return the remarks that are known before the first trial."""
    found = [f"The server had {cpus:g} CPU{'s' if cpus != 1 else ''} of this machine, the generator others."]
    if unread:
        found.append(f"Of --current these were not used: {', '.join(unread)}.")
    if len(knobs) == 1:
        found.append(f"Only {knobs[0].server} was tried; --servers names others.")
    return tuple(found)


def _refuse(own: AppOptions, wanted: TuneOptions, load: TuneLoadOptions) -> None:
    """Refuse options that ask for nothing, or for what contradicts each other."""
    if own.app is None or own.commands:
        raise UsageError(
            "expected your own app, which a server runs; a program has no settings that Prony can turn",
            hint="prony tune --app module:attribute",
        )
    if load.rate is not None and wanted.objective is Aim.RATE:
        raise UsageError(
            f"`--rate {load.rate}`: at one rate all settings carry the same",
            hint="add --objective cpu or --objective memory, or leave out --rate",
        )
    if "," in load.connections:
        raise UsageError(f"`-c {load.connections}`: expected one number of connections")


def _conditions(text: str) -> "tuple[Condition, ...]":
    from prony.analysis.objective import parse_objective

    try:
        return parse_objective(text).conditions
    except ValueError as error:
        raise UsageError(f"`--slo`: {error}") from None


def _current(text: str | None) -> "tuple[Candidate, tuple[str, ...]] | None":
    from prony.tune.recipes import read_command

    return None if text is None else read_command(text)


def _servers(own: AppOptions, current: "Candidate | None") -> str | None:
    """Return the servers to try: the typed ones, and that of today."""
    names = own.servers.split(",") if own.servers else []
    names = [current.server, *names] if current else names
    return ",".join(dict.fromkeys(name.strip() for name in names)) or None


def _narrowed(template: "Study", own: AppOptions) -> "Study":
    """Return the study with the usual server alone, where none is typed."""
    cells = template.plan.cells if own.servers else template.plan.cells[:1]
    say(f"{cells[0].subject.app.title}: {cells[0].describe_load()}, {cells[0].workload.describe_request()}")
    return replace(template, plan=replace(template.plan, cells=cells))


def _as_run(
    typed: "Mapping[str, str]",
    own: AppOptions,
    wanted: TuneOptions,
    load: TuneLoadOptions,
    check: CheckOptions,
    sandbox: SandboxOptions,
) -> RunOptions:
    """Return the options of the study that each stage is a part of."""
    own_load = {name: getattr(load, name) for name in load.__slots__}
    own_load["duration"] = load.duration or _DURATION
    own_load["connections"] = (
        None if load.rate is not None and load.connections == _CONNECTIONS else load.connections
    )
    return RunOptions(
        typed=typed,
        study=None,
        what=WhatOptions(),
        own=own,
        load=LoadOptions(**own_load),
        check=check,
        sure=SureOptions(repeats=2, pilot="0s", no_calibration=True, seed=wanted.seed),
        sandbox=sandbox,
        output=OutputOptions(show_only=True),
    )


@dataclass(slots=True)
class _Search:
    """A search for settings in a folder. ``template``: a study of each server as it starts."""

    template: "Study"
    wish: "Wish"
    folder: Path
    origin: str
    budget_s: float
    trial_s: float
    remarks: tuple[str, ...]
    has_length: bool
    window_ns: int | None = None
    stages: "list[tuple[Stage, Path]]" = field(default_factory=list)

    def run(self) -> int:
        """Run stages until the answer is there, and print it; an interruption keeps what was measured."""
        from prony.tune.race import race

        core = race(self.wish)
        self.folder.mkdir(exist_ok=True)
        say(f"to go on after an interruption, type again: `{whole_command(self.folder)}`")
        try:
            with terminate_as_interrupt():
                stage = next(core)
                while True:
                    stage = core.send(self._measured(stage))
        except KeyboardInterrupt as interrupt:
            say(f"interrupted; to go on, type again: `{whole_command(self.folder)}`")
            return status_of(interrupt)
        except StopIteration as end:
            return self._show(end.value)

    def _measured(self, stage: "Stage") -> "Reply":
        """Return the figures of a stage, which is measured as far as its archive lacks it."""
        from prony.study.tuning import read_stage, stage_plan, trial_s, trials_of

        path = self.folder / f"{len(self.stages) + 1}-{stage.name}.prony"
        plan = stage_plan(self.template.plan, stage, self.wish.knobs, self.window_ns)
        study = replace(self.template, plan=plan, out=path, resumes=goes_on(path, plan, ()))
        if not (study.resumes and is_complete(path)):
            self._run(study, stage)
        self.stages.append((stage, path))
        reading = read_stage(path)
        # Of the archive and not of a clock: the same search goes on as it would have.
        self.trial_s = max(self.trial_s, trial_s(reading) or 0.0) if stage.trials > 1 else self.trial_s
        trials = trials_of(reading, stage)
        if not self.has_length:
            self._lengthen(trials, stage)
        return trials, room(self.budget_s, self.trial_s)

    def _lengthen(self, trials: "Trials", stage: "Stage") -> None:
        """Make the next windows as long as percentiles of the conditions need, as far as is known by now."""
        from prony.study.tuning import expected_rate, window_s

        rate = expected_rate(trials, stage, self.wish.machine.cpus)
        before_s = seconds(self.window_ns or duration_of("--duration", _DURATION))
        length_s = ceil(min(_LONGEST_S, max(before_s, window_s(rate, self.wish.conditions))))
        self.window_ns = length_s * SECOND_NS
        self.trial_s += length_s - before_s

    def _run(self, study: "Study", stage: "Stage") -> None:
        from prony.cli.progress import StudyProgress
        from prony.study import run_study
        from prony.study.extent import number_of, rough_length

        before = sum(one.trials for one, _ in self.stages)
        left_s = max(0.0, self.budget_s - before * self.trial_s / _FOR_TRIALS)
        with StudyProgress(stage.trials, self.trial_s) as progress:
            progress.notice(
                f"{stage.name}: {number_of(len(stage.candidates), 'setting')} in "
                f"{number_of(stage.blocks, 'block')}, about {rough_length(stage.trials * self.trial_s)}; "
                f"at most {rough_length(left_s)} left"
            )
            run_study(study, progress)

    def _show(self, answer: "Answer") -> int:
        from prony.faces.terminal import TerminalReporter
        from prony.tune.answer import answer_document

        TerminalReporter().write_report(answer_document(answer, self.wish, self._about(answer)))
        return ExitCode.DONE if answer.fresh and answer.chosen else ExitCode.COULD_NOT_MEASURE

    def _about(self, answer: "Answer") -> "About":
        from prony.assembly import command_line
        from prony.study.tuning import read_stage, server_of
        from prony.tune.answer import About
        from prony.tune.recipes import recipe_of

        chosen, (stage, path) = answer.chosen or answer.incumbent, self.stages[-1]
        place, reading = stage.candidates.index(chosen), read_stage(path)
        subject = next(cell.subject for cell in reading.plan.cells if cell.id == place)
        cell = next(one for one in self.template.plan.cells if server_of(one.subject) == chosen.server)
        target = subject.app.targets[subject.interface]
        recipe = recipe_of(chosen, target, str(subject.interface)) if answer.chosen else None
        full = command_line(self.template.catalog, subject, cpus_of(reading.plan)[subject.name])
        return About(
            app=target,
            load=f"{reading.plan.cells[place].describe_load()}, {cell.workload.describe_request()}",
            origin=self.origin,
            start=recipe.shell if recipe else full,
            recipe=recipe,
            folder=subject.app.folder,
            limits=_limits(reading, place),
            remarks=(*self.remarks, *_of_generator(reading), self._archives()),
        )

    def _archives(self) -> str:
        trials = sum(one.trials for one, _ in self.stages)
        return (
            f"{trials} trials in {len(self.stages)} archives, `{self.folder}`: `prony report FILE` reads "
            f"each, `prony why {self.stages[-1][1]}` says what limits."
        )


def _limits(reading: "Reading", cell: int) -> str:
    from prony.report.diagnoses import diagnosis_words

    found = reading.diagnoses.get(cell)
    words = str(diagnosis_words([(found, "")])) if found else ""
    return words[:1].upper() + words[1:]


def _of_generator(reading: "Reading") -> list[str]:
    """Return that the generator may have been the limit, where it may."""
    if not any(cell.at_least for cell in reading.cells):
        return []
    return ["The generator or another program may have limited some trials: it carries at least so much."]

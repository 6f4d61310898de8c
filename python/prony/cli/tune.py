"""``prony tune``: which settings, and which server, an app should run with on this machine."""

import os
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer

from prony.cli.applicable import given
from prony.cli.flat import flattened, option
from prony.cli.found_app import Found, found_app, with_file
from prony.cli.load_options import AskOptions, CheckOptions
from prony.cli.options import check_output, duration_of, read_option, timeout_option
from prony.cli.request_files import FileOptions, RequestFiles
from prony.cli.run import study_of
from prony.cli.run_checks import cpus_of
from prony.cli.run_options import (
    AppOptions,
    LoadOptions,
    OutputOptions,
    RunOptions,
    SureOptions,
    ready_timeout_option,
)
from prony.cli.sandbox_options import SandboxOptions
from prony.cli.talk import say
from prony.cli.trying import Attempt, pairs_option, run_attempt
from prony.cli.tune_search import DURATION, FOR_TRIALS, Today, TuneSearch, is_turned, room, today_of
from prony.cli.variables import refuse_masked, variables
from prony.core.errors import UsageError
from prony.core.units import seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prony.catalog.schema.loader import Catalog
    from prony.figures.objective import Condition
    from prony.model.plan import Plan
    from prony.model.sandbox import SandboxChoice
    from prony.study import Study
    from prony.tune.space import Candidate, Knobs, Machine

EPILOG = """\
Examples:
  prony tune --app shop:app                                the usual server, 15 minutes
  prony tune --app shop:app --slo 'p99 < 50ms, errors < 0.1%' --memory 512M
  prony tune --app shop:app --servers gunicorn,granian     which server too
  prony tune --app shop:app --current 'gunicorn shop:app'
  prony tune --app shop:app --hold workers                 the app must have as many processes as today
  prony tune --app shop:app --rate 200 --objective cpu     the least CPU at this rate
  prony tune --app shop:app --path /=9 --path /cart=1 -c 100 --budget 30m
  prony tune --app shop:app --try gunicorn.threads=8       this alone, against the settings of today
"""

_USUAL_SLO = "errors < 0.1%"
# Of a fixed rate: what carries less falls behind.
_CARRIED = 0.95


class Aim(StrEnum):
    """What the best has most of, or takes least of."""

    RATE = "rate"
    CPU = "cpu"
    MEMORY = "memory"


class Number(StrEnum):
    """What is turned."""

    WORKERS = "workers"
    THREADS = "threads"


_METRICS = {Aim.RATE: "ok_per_s", Aim.CPU: "cpu_ns_per_request", Aim.MEMORY: "pss_end"}


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """What is best, and how long it may take."""

    PANEL: ClassVar[str] = "What is best"

    slo: str = option(_USUAL_SLO, "What the settings must be shown to meet.")
    objective: Aim = option(
        Aim.RATE, "The most requests per second, or the least CPU time a request, or memory."
    )
    budget: str = option("15m", "How long it may take, without builds.")
    database_connections: int | None = option(
        None,
        "What the app's database allows: settings with more workers and threads are not tried, each "
        "of which may hold a connection.",
        min=1,
    )
    hold: list[Number] | None = option(
        None,
        "Leave this number as it is today: workers, of an app that keeps something in the memory of its "
        "process. May be repeated.",
    )
    attempt: str | None = option(
        None,
        "Search for nothing: try this setting against those of today, in fresh blocks.",
        "--try",
        metavar="SERVER.KEY=VALUE",
    )
    pairs: int = pairs_option()
    seed: int = option(1, "Seed of the random order.", min=0)
    json_to: str | None = option(
        None, "Write the answer as JSON to this file, or to standard output for -.", "--json"
    )
    out: Path | None = option(
        None,
        "The folder of its archives (APP-tune-DATE in this folder). If it has a part of this "
        "search, the search goes on.",
        metavar="FOLDER",
    )


@dataclass(frozen=True, slots=True)
class TuneLoadOptions:
    """The load, as `prony run` has it."""

    PANEL: ClassVar[str] = "Load"

    connections: str | None = option(
        None,
        "Closed loop: so many connections (64; more where the app waits long, fewer where --slo limits the "
        "latency).",
        "-c",
        "--connections",
    )
    rate: str | None = option(None, "Open loop: requests per second; for --objective cpu or memory.")
    duration: str | None = option(
        None, "Length of each trial's window (3s; longer where --slo has a percentile that needs it)."
    )
    warmup: str = option("1s", "The same load before each window.")
    timeout: str = timeout_option()
    ready_timeout: str | None = ready_timeout_option()


@flattened
def tune(
    context: typer.Context,
    own: AppOptions,
    wanted: TuneOptions,
    load: TuneLoadOptions,
    ask: AskOptions,
    files: FileOptions,
    check: CheckOptions,
    sandbox: SandboxOptions,
) -> int:
    """Find the settings, and the server, with which your app serves best on this machine; or keep yours."""
    from prony.catalog.schema.loader import load_catalog

    known, typed = load_catalog(()), given(context)
    _refuse(own, wanted, load)
    _refuse_beside(typed)
    check_output(wanted.json_to)
    files.check(typed, is_mix=False)
    ask.check(keeps=ask.keep_alive is not False)
    refuse_masked(own.env or (), ask.header or ())
    conditions = _conditions(wanted.slo)
    own = with_file(own)
    options = replace(_as_run(typed, own, wanted, load, sandbox), ask=ask, check=check)
    found = found_app(options, known)
    today = _today(own, found, known)
    own = replace(own, servers=_servers(own, today), env=_variables(own, today))
    requests = RequestFiles(files)
    context.call_on_close(requests.close)
    options, found = replace(options, own=own), replace(found, current=None)
    template = _narrowed(study_of(options, today.catalog(known), requests, found), own, today)
    if wanted.attempt is not None:
        return _attempt(template, wanted, today)
    return _search(template, wanted, conditions, today, load).run()


def _attempt(template: "Study", wanted: TuneOptions, current: Today) -> int:
    """Try one setting against those of today.

    *Errors*: UsageError for a setting that the server has not, a value that it does not take, or no setting.
    """
    from prony.study.tuning import knobs_of

    typed = wanted.attempt or ""
    server, dot, rest = typed.partition(".")
    key, sign, value = rest.partition("=")
    if not (dot and sign and key and value):
        raise UsageError(f"`--try {typed}`: expected a setting of a server, such as gunicorn.threads=8")
    today = current.server
    if today and server in template.catalog.servers and server != today:
        raise UsageError(
            f"`--try {typed}`: the app is served by `{today}` today; expected a setting of that",
            hint=f"--servers {server} without --try compares both servers; --no-current --servers {server} "
            f"tries it against the defaults of {server}",
        )
    cell = next((one for one in template.plan.cells if one.subject.server == server), None)
    if cell is None:
        names = ", ".join(one.server for one in template.plan.subjects())
        raise UsageError(
            f"`--try {typed}`: no server here is `{server}`; expected one of {names}",
            hint="--servers NAME names another",
        )
    cpus = cpus_of(template.plan)[cell.subject.name]
    knobs = knobs_of(cell.subject, template.catalog, cpus)
    before = knobs.settings(_incumbent((knobs,), current.candidate))
    cell = replace(cell, subject=replace(cell.subject, settings={**cell.subject.settings, **before}))
    attempt = Attempt(cell, key, value, _METRICS[wanted.objective], wanted.pairs)
    return run_attempt(template, attempt, wanted.out, wanted.json_to)


def _search(
    template: "Study",
    wanted: TuneOptions,
    conditions: "tuple[Condition, ...]",
    today: Today,
    load: TuneLoadOptions,
) -> TuneSearch:
    """Return the search that the options describe.

    *Errors*: UsageError for servers without settings to turn, or a budget that is too short.
    """
    from prony.study.tuning import StageLoad, knobs_of
    from prony.tune.race import TuneWish, least_trials

    plan, counts = template.plan, cpus_of(template.plan)
    knobs = tuple(knobs_of(one, template.catalog, counts[one.name]) for one in plan.subjects())
    incumbent = _incumbent(knobs, today.candidate)
    free = _not_held(wanted.hold or (), knobs)
    knobs = tuple(one.holding(wanted.hold or (), incumbent) for one in knobs)
    if not any(one.workers or one.threads for one in knobs):
        names = ", ".join(one.server for one in knobs)
        raise UsageError(
            f"{names}: no number of workers or threads that Prony knows can be set",
            hint="`prony servers NAME` lists the settings of a server; `prony run` compares servers",
        )
    sandbox, each_s = plan.sandbox, _trial_s(template)
    budget_s = seconds(duration_of("--budget", wanted.budget))
    wish = TuneWish(
        knobs=knobs,
        incumbent=incumbent,
        machine=_machine(sandbox, max(counts.values()), wanted.database_connections),
        trials=room(budget_s, each_s),
        metric=_METRICS[wanted.objective],
        higher_is_better=wanted.objective is Aim.RATE,
        conditions=(*conditions, *_of_memory(sandbox.memory_bytes), *_of_rate(plan)),
    )
    if wish.trials < (least := least_trials(wish)):
        needed = -int(-least * each_s / FOR_TRIALS // 60)
        raise UsageError(
            f"`--budget {wanted.budget}`: has room for {wish.trials} trials of {each_s:.1f} s, and a search "
            f"takes at least {least}",
            hint=f"--budget {needed}m; or shorter trials with --duration and --warmup",
        )
    return TuneSearch(
        template=template,
        wish=wish,
        folder=_folder(wanted.out or Path(f"{plan.name}-tune-{time.strftime('%Y%m%d-%H%M%S')}")),
        today=today,
        budget_s=budget_s,
        trial_s=each_s,
        remarks=(*free, *_before(knobs, wanted.database_connections)),
        load=StageLoad(),
        has_length=load.duration is not None,
        has_connections=load.connections is not None or load.rate is not None,
        json_to=wanted.json_to,
    )


def _not_held(held: "Sequence[Number]", knobs: "tuple[Knobs, ...]") -> list[str]:
    """Return which servers have no number that could be left as it is, in words.

    *Errors*: UsageError for a number that none of them has.
    """
    found = []
    for number in held:
        lacking = [one.server for one in knobs if not getattr(one, number)]
        if len(lacking) == len(knobs):
            raise UsageError(
                f"`--hold {number}`: no number of {number} can be turned on {', '.join(lacking)}",
                hint="leave it out",
            )
        if lacking:
            names = ", ".join(lacking)
            found.append(f"No number of {number} can be turned on {names}: --hold {number} holds none there.")
            say(found[-1])
    return found


def _machine(sandbox: "SandboxChoice", cpus: int, connections: int | None) -> "Machine":
    """Return what a server may use, within the limits of Prony's own control groups: a container of one CPU
    shows all of its machine.
    """
    from prony.machine.cgroups import cgroup, memory
    from prony.sandbox.choice import memory_bytes
    from prony.tune.space import Machine

    found = (cgroup()["cpu_quota"], memory()["limit_bytes"])
    quota, limit = (one if isinstance(one, int | float) else inf for one in found)
    own = sandbox.memory_bytes or memory_bytes()
    return Machine(min(sandbox.cpu_quota or cpus, quota), min(own, limit), connections)


def _incumbent(knobs: "tuple[Knobs, ...]", current: "Candidate | None") -> "Candidate":
    """Return the settings of today, as far as the server has them, with defaults where none are typed."""
    own = next((one for one in knobs if current is not None and one.server == current.server), knobs[0])
    if current is None:
        return own.default
    workers, threads = current.workers if own.workers else None, current.threads if own.threads else None
    return replace(current, workers=workers, threads=threads).filled(own.default)


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
    from prony.figures.objective import parse_condition

    return () if limit is None else (parse_condition(f"memory < {limit}B"),)


def _of_rate(plan: "Plan") -> "tuple[Condition, ...]":
    """Return that what an open loop asks for is carried."""
    from prony.figures.objective import parse_condition
    from prony.model.workload import OpenLoop

    loop = plan.cells[0].workload.loop
    if not isinstance(loop, OpenLoop):
        return ()
    return (parse_condition(f"rps > {_CARRIED * loop.rate_per_s:g}"),)


def _before(knobs: "tuple[Knobs, ...]", connections: int | None) -> tuple[str, ...]:
    """Return the remarks that are known before the first trial."""
    found = []
    pooled = [one.server for one in knobs if not one.threads]
    if connections is not None and pooled:
        remark = (
            f"A worker of {', '.join(pooled)} was counted as one connection to the database, and its app may "
            f"hold a pool of them: divide {connections} by the size of that for --database-connections."
        )
        say(remark)
        found.append(remark)
    if len(knobs) == 1:
        found.append(f"Only {knobs[0].server} was tried; --servers names others.")
    return tuple(found)


def _refuse(own: AppOptions, wanted: TuneOptions, load: TuneLoadOptions) -> None:
    """Refuse options that ask for nothing, or for what contradicts each other."""
    if len(own.folders) > 1:
        raise UsageError("`--dir`: settings are tried for one folder; expected one")
    if own.app is None or own.commands:
        raise UsageError(
            "expected your own app, which a server runs; a program has no settings that Prony can turn",
            hint="prony tune --app module:attribute",
        )
    if set(wanted.hold or ()) == set(Number):
        raise UsageError(
            "`--hold workers --hold threads`: nothing is left to turn",
            hint="leave one of them out; `prony run` compares servers",
        )
    if load.rate is not None and wanted.objective is Aim.RATE:
        raise UsageError(
            f"`--rate {load.rate}`: at one rate all settings carry the same",
            hint="add --objective cpu or --objective memory, or leave out --rate",
        )
    if load.connections is not None and "," in load.connections:
        raise UsageError(f"`-c {load.connections}`: expected one number of connections")
    # Before it is said what was found in the folder.
    duration_of("--budget", wanted.budget)


# What a search alone asks for.
_OF_SEARCH = ("slo", "budget", "database_connections", "hold")


def _refuse_beside(typed: "Mapping[str, str]") -> None:
    """Refuse options that change nothing: one setting is tried, and what else is asked of it is not looked
    at; or a search has as many pairs as there is time for.
    """
    wrong = [typed[name] for name in _OF_SEARCH if name in typed]
    if "attempt" in typed and wrong:
        raise UsageError(
            f"`{wrong[0]}` does not work with `--try`, which searches for nothing",
            hint="leave out one of them; `prony run --set` measures what a setting meets",
        )
    if "pairs" in typed and "attempt" not in typed:
        raise UsageError("`--pairs` only works with `--try`", hint="--budget says how long a search may take")


def _conditions(text: str) -> "tuple[Condition, ...]":
    """Return what is asked for; errors are always limited: what fails is quick, and takes little."""
    from prony.figures.objective import parse_objective

    usual = parse_objective(_USUAL_SLO).conditions
    found = read_option("--slo", text, parse_objective).conditions
    is_said = any(name in ("error_ratio", "success_ratio") for one in found for name in one.metrics)
    return found if is_said else (*found, *usual)


def _today(own: AppOptions, found: Found, known: "Catalog") -> Today:
    """Return what serves the app today: the command that is typed or in a file of the folder, else that of a
    server whose configuration lies there.

    *Errors*: UsageError for a typed command of which the numbers are not known.
    """
    from prony.catalog.discover.current import ReadingAid
    from prony.study.app_folder import configured_in
    from prony.study.own_app import said_of

    if own.current and own.app in known.apps:
        raise UsageError(
            f"`--current {own.current}`: `{own.app}` is a built-in app, which nothing serves today"
        )
    current = found.current
    if current is None and found.app is not None and not own.no_current:
        aid = ReadingAid("", variables(own.env or (), own.env_file), os.cpu_count() or 1)
        current = configured_in(own.folder, found.app.target, aid)
        speaks = known.interfaces(current.server) if current else ()
        current = current if found.app.interface in (None, *speaks) else None
    if current is not None:
        say(said_of(current))
    return today_of(current, own.current, known)


def _variables(own: AppOptions, today: Today) -> list[str]:
    """Return the app's variables: what is typed, and what the source of today's command sets besides."""
    typed = variables(own.env or (), own.env_file)
    kept = [text for text in own.env or () if not is_turned(text.partition("=")[0])]
    return [*today.variables(typed), *kept]


def _servers(own: AppOptions, today: Today) -> str | None:
    """Return the servers to try: the typed ones, and that of today."""
    names = [today.server, *(own.servers.split(",") if own.servers else ())]
    return ",".join(dict.fromkeys(filter(None, (name.strip() for name in names)))) or None


def _narrowed(template: "Study", own: AppOptions, today: Today) -> "Study":
    """Return the study with the usual server alone, where none is typed, and what is said of today's."""
    from prony.study.own_app import said_of

    cells = template.plan.cells if own.servers else template.plan.cells[:1]
    say(f"{cells[0].subject.app.title}: {cells[0].describe()}")
    notes = (*template.plan.notes, *([said_of(today.current)] if today.current else ()))
    return replace(template, plan=replace(template.plan, cells=cells, notes=notes))


def _as_run(
    typed: "Mapping[str, str]",
    own: AppOptions,
    wanted: TuneOptions,
    load: TuneLoadOptions,
    sandbox: SandboxOptions,
) -> RunOptions:
    """Return the options of the study that each stage is a part of."""
    from prony.study.tuning import USUAL_CONNECTIONS

    own_load = {name: getattr(load, name) for name in load.__slots__}
    own_load["duration"] = load.duration or DURATION
    usual = None if load.rate is not None else str(USUAL_CONNECTIONS)
    own_load["connections"] = load.connections or usual
    return RunOptions(
        typed=typed,
        own=own,
        load=LoadOptions(**own_load),
        sure=SureOptions(repeats=2, pilot="0s", no_calibration=True, seed=wanted.seed),
        sandbox=replace(sandbox, share_cpus=sandbox.share_cpus or _needs_all(sandbox.cpu_quota)),
        output=OutputOptions(show_only=True),
    )


def _needs_all(quota: float | None) -> bool:
    """Return whether the server needs the generator's CPUs too: how many workers are best depends on how many
    CPUs they have, and the app will run on all of them, or on so many as ``quota`` says.
    """
    from prony.machine.cpus import available_cpus
    from prony.sandbox.placement import place

    cpus = available_cpus()
    beside = len(place(cpus).server_cpus) if len(cpus) > 1 else 0
    return (quota or len(cpus)) > beside

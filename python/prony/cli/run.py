"""``prony run``: a study, a file, or a user's own app."""

import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.options import body_of, connections_of, duration_of, make_request, optional, rate_of
from prony.errors import ExitCode, UsageError
from prony.model import Arrivals, Interface

if TYPE_CHECKING:
    from prony.catalog.loader import Catalog
    from prony.model import App, Plan, Request, SandboxChoice
    from prony.plan import PlanOptions, StudyDocument
    from prony.study import Study

__all__ = ["EPILOG", "run"]

EPILOG = """\
Examples:

  prony run embedded-servers                              a built-in study, quick profile

  prony run embedded-servers --only '*flask*' --repeats 10

  prony run my-study.toml --profile full --out result.prony

  prony run --app shop:app --servers gunicorn,waitress,uwsgi -c 10,100

  prony run --app shop:app --dir ~/shop --requirements requirements.txt --servers gunicorn,granian --rate
  550 --duration 30s

  prony run --app shop:app --servers gunicorn --set gunicorn.workers=4 --dry-run
"""

DEFAULT_SERVERS = "gunicorn,waitress,uwsgi"
# How long a trial takes besides its load: start, contract, drain, stop. Only for the estimate before the
# first trial is over.
TRIAL_OVERHEAD_S = 2.5
Panel = "Your own app"


@dataclass(frozen=True, slots=True)
class _AdHoc:
    """The options that describe a user's own app and its load."""

    app: str
    interface: Interface
    folder: Path
    servers: tuple[str, ...]
    connections: tuple[int, ...] | None
    rate: float | None
    arrivals: Arrivals
    duration_ns: int
    warmup_ns: int
    timeout_ns: int
    repeats: int
    request: "Request"
    expect_status: int | None
    expect_body: bytes | None
    environment: dict[str, str]


def run(
    study: Annotated[
        str | None, typer.Argument(help="A built-in study, or a TOML file.", show_default=False)
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="quick (the default), full, original, or one of the file's own.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="Only subjects whose name fits this pattern, such as '*flask*'.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Blocks: how often every subject is measured.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random order.")] = 1,
    out: Annotated[Path | None, typer.Option(help="The archive to write (NAME-DATE.prony here).")] = None,
    engine_threads: Annotated[int, typer.Option(min=1, help="Worker threads of the load engine.")] = 1,
    app: Annotated[
        str | None, typer.Option(help="Your application, module:attribute.", rich_help_panel=Panel)
    ] = None,
    interface: Annotated[Interface, typer.Option(help="How servers call it.")] = Interface.WSGI,
    directory: Annotated[Path, typer.Option("--dir", help="The folder that it is imported from.")] = Path(),
    requirements: Annotated[Path | None, typer.Option(help="Its requirements.txt or pyproject.toml.")] = None,
    python: Annotated[
        Path | None, typer.Option(help="Use this virtual environment as it stands, instead of building one.")
    ] = None,
    servers: Annotated[str, typer.Option(help="The servers to compare.")] = DEFAULT_SERVERS,
    connections: Annotated[
        str | None,
        typer.Option(
            "-c", "--connections", help="Closed loop: so many connections; a list makes a grid (10)."
        ),
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Open loop: requests per second.")] = None,
    arrivals: Annotated[
        Arrivals, typer.Option(help="Open loop: evenly spaced or at random.")
    ] = Arrivals.CONSTANT,
    duration: Annotated[str | None, typer.Option(help="Length of a trial's window (10s).")] = None,
    warmup: Annotated[str | None, typer.Option(help="The same load before the window (2s).")] = None,
    timeout: Annotated[str, typer.Option(help="The longest that a request may take.")] = "10s",
    path: Annotated[str, typer.Option(help="What is requested.")] = "/",
    method: Annotated[str, typer.Option("-m", "--method", help="The request's method.")] = "GET",
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", help="A header, `Name: value`; may be repeated.")
    ] = None,
    body: Annotated[str | None, typer.Option(help="The request's body; @FILE reads it from a file.")] = None,
    expect_status: Annotated[
        int | None, typer.Option(min=100, max=999, help="Only this status is a success (200 to 399).")
    ] = None,
    expect_body: Annotated[
        str | None, typer.Option(help="Only this body is a success; @FILE reads it from a file.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(help="A variable for the app, K=V, or K to pass yours on; may be repeated."),
    ] = None,
    env_file: Annotated[Path | None, typer.Option(help="Variables for the app, a K=V a line.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A server's setting, server.key=value; may be repeated.")
    ] = None,
    net: Annotated[
        str | None, typer.Option(help="isolated or host (a study: isolated; your own app: host).")
    ] = None,
    run_as: Annotated[
        str | None, typer.Option(help="The user that servers run as, when Prony is root.")
    ] = None,
    share_cpus: Annotated[
        bool, typer.Option("--share-cpus", help="Let server and generator run on the same CPUs.")
    ] = False,
    catalog: Annotated[
        list[Path] | None, typer.Option(help="More catalogue entries: a file or a folder.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail (3) when a subject is unavailable or a trial does not count."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print cells, commands and time, and start nothing.")
    ] = False,
) -> int:
    """Measure a built-in study, a study's file, or your own app on several servers, and say which is best."""
    from prony.catalog.loader import load_catalog
    from prony.model import EngineChoice
    from prony.plan import PlanOptions
    from prony.runas import resolve_user

    user = resolve_user(run_as)
    known = load_catalog(tuple(catalog or ()))
    options = PlanOptions(
        profile=profile,
        only=only,
        blocks=repeats,
        seed=seed,
        engine=EngineChoice(threads=engine_threads),
        sandbox=_sandbox(net, share_cpus, run_as, own_app=app is not None),
        settings=_settings(settings or ()),
    )
    _check_settings(options, known)
    if (study is None) == (app is None):
        raise UsageError(
            "name a study, or your own app with `--app module:attribute`",
            hint="prony run embedded-servers; prony run --help",
        )
    if study is not None:
        plan = _plan_of_study(study, known, options)
    else:
        wish = _AdHoc(
            app=str(app),
            interface=interface,
            folder=directory,
            servers=tuple(name.strip() for name in servers.split(",") if name.strip()),
            connections=optional(connections_of, "-c", connections),
            rate=optional(rate_of, "--rate", rate),
            arrivals=arrivals,
            duration_ns=optional(duration_of, "--duration", duration) or 10_000_000_000,
            warmup_ns=2_000_000_000 if warmup is None else duration_of("--warmup", warmup),
            timeout_ns=duration_of("--timeout", timeout),
            repeats=repeats or 3,
            request=make_request(method, path, header or (), body, keep_alive=True),
            expect_status=expect_status,
            expect_body=body_of(expect_body),
            environment=_environment(env or (), env_file),
        )
        plan = _plan_of_app(wish, known, options)
    task = _study(plan, known, user, out, requirements, python)
    if dry_run:
        _print_dry_run(task)
        return ExitCode.DONE
    return _measure(task, strict)


# --- the plan ---------------------------------------------------------------------------------------------


def _plan_of_study(name: str, known: "Catalog", options: "PlanOptions") -> "Plan":
    from prony.catalog.studies import read_study
    from prony.plan import make_plan

    document, text = read_study(name)
    return make_plan(document, text, known, options)


def _plan_of_app(wish: _AdHoc, known: "Catalog", options: "PlanOptions") -> "Plan":
    from prony.catalog.loader import with_app
    from prony.plan import make_plan

    app = _app(wish)
    view = with_app(known, app)
    # What the user wrote is the command line: it is kept verbatim, as a study's file is, but for secrets.
    text = shlex.join(["prony", *_without_values(sys.argv[1:])])
    return make_plan(
        _document(wish, app.name), text, view, replace(options, request=wish.request, profile=None)
    )


def _app(wish: _AdHoc) -> "App":
    from prony.catalog.apps import user_app
    from prony.model import Check, Contract

    expected = wish.expect_status is not None or wish.expect_body is not None
    checks = (Check(wish.request, wish.expect_status, wish.expect_body),) if expected else ()
    return user_app(
        wish.app, wish.folder, wish.interface, contract=Contract(checks), environment=wish.environment
    )


def _document(wish: _AdHoc, app_name: str) -> "StudyDocument":
    from prony.plan import ProfileDocument, StudyDocument, SubjectDocument, WorkloadDocument

    open_loop = wish.rate is not None
    load = WorkloadDocument(
        loop="open" if open_loop else "closed",
        rate=(wish.rate,) if wish.rate is not None else None,
        connections=wish.connections or (None if open_loop else (10,)),
        arrivals=wish.arrivals,
    )
    profile = ProfileDocument(
        blocks=wish.repeats, duration=wish.duration_ns, warmup=wish.warmup_ns, timeout=wish.timeout_ns
    )
    return StudyDocument(
        name=re.sub(r"[^a-z0-9]+", "-", app_name.lower()).strip("-") or "app",
        title=f"{wish.app} on {len(wish.servers)} server{'s' if len(wish.servers) != 1 else ''}",
        question=f"Which server runs {wish.app} best?",
        subjects=(SubjectDocument(server=wish.servers, app=(app_name,), interface=wish.interface),),
        workloads=(load,),
        profiles={"custom": profile},
    )


# --- options ----------------------------------------------------------------------------------------------


def _sandbox(net: str | None, share_cpus: bool, run_as: str | None, own_app: bool) -> "SandboxChoice":
    from prony.model import SandboxChoice

    match net or ("host" if own_app else "isolated"):
        case "isolated":
            return SandboxChoice(network="isolated", share_cpus=share_cpus, run_as=run_as)
        case "host":
            # A user's app may need a database on the loopback: it is never taken away unasked.
            return SandboxChoice(network="host", share_cpus=share_cpus, run_as=run_as)
        case other:
            raise UsageError(f"`--net {other}`: expected `isolated` or `host`")


def _settings(texts: Sequence[str]) -> dict[str, dict[str, int | str]]:
    found: dict[str, dict[str, int | str]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        server, dot, key = target.rpartition(".")
        if not (equals and dot and server and key):
            raise UsageError(f"`--set {text}`: expected `server.key=value`, such as `gunicorn.workers=4`")
        found.setdefault(server, {})[key] = int(value) if re.fullmatch(r"-?\d+", value) else value
    return found


def _check_settings(options: "PlanOptions", known: "Catalog") -> None:
    for server in options.settings:
        known.find(server)


def _environment(pairs: Sequence[str], file: Path | None) -> dict[str, str]:
    import os

    found: dict[str, str] = {}
    for text in [*_lines(file), *pairs]:
        name, equals, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"`--env {name}`: expected a variable's name, or `NAME=value`")
        if not equals and name not in os.environ:
            raise UsageError(f"`--env {name}`: no such variable is set here; expected `{name}=value`")
        found[name] = value if equals else os.environ[name]
    return found


def _without_values(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the values of ``--env`` left out.

    >>> _without_values(["run", "--env", "TOKEN=x", "--env=A=b", "-c", "10"])
    ['run', '--env', 'TOKEN=...', '--env=A=...', '-c', '10']
    """
    shown: list[str] = []
    for argument in arguments:
        follows = bool(shown) and shown[-1] == "--env"
        prefix = "" if follows else "--env="
        if (follows or argument.startswith("--env=")) and "=" in argument.removeprefix(prefix):
            name = argument.removeprefix(prefix).partition("=")[0]
            shown.append(f"{prefix}{name}=...")
        else:
            shown.append(argument)
    return shown


def _lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`--env-file {file}`: cannot read it: {error}") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


# --- measuring --------------------------------------------------------------------------------------------


def _study(
    plan: "Plan",
    known: "Catalog",
    user: object,
    out: Path | None,
    requirements: Path | None,
    python: Path | None,
) -> "Study":
    from prony.runas import RunAs
    from prony.study import Study

    if not isinstance(user, RunAs):
        raise TypeError(user)
    name = out or Path(f"{plan.name}-{time.strftime('%Y%m%d-%H%M%S')}.prony")
    for file in (requirements, python):
        if file is not None and not file.exists():
            raise UsageError(f"`{file}` does not exist")
    return Study(plan, known, user, name, requirements, python)


def _trial_s(plan: "Plan") -> float:
    """Return the expected length of a trial, in seconds, averaged over the cells."""
    from prony.model import DurationStop

    lengths = [
        (cell.workload.warmup_ns + cell.workload.stop.duration_ns) / 1e9
        for cell in plan.cells
        if isinstance(cell.workload.stop, DurationStop)
    ]
    return sum(lengths) / max(1, len(lengths)) + TRIAL_OVERHEAD_S


def _measure(task: "Study", strict: bool) -> int:
    from prony.cli.interrupt import Terminated, terminate_as_interrupt
    from prony.cli.progress import StudyProgress
    from prony.cli.report import show_report
    from prony.study import run_study

    trials = len(task.plan.cells) * task.plan.blocks
    status: int = ExitCode.DONE
    with terminate_as_interrupt(), StudyProgress(trials, _trial_s(task.plan)) as progress:
        minutes = trials * _trial_s(task.plan) / 60
        progress.notice(f"{task.plan.title}: {trials} trials, about {minutes:.0f} min")
        try:
            run_study(task, progress)
        except KeyboardInterrupt as interrupt:
            status = ExitCode.TERMINATED if isinstance(interrupt, Terminated) else ExitCode.INTERRUPTED
    if not task.out.exists():
        return status
    show_report(task.out)
    typer.echo(f"\nArchive: {task.out}   (prony report {shlex.quote(str(task.out))})")
    return status or _verdict(task.out, strict)


def _verdict(out: Path, strict: bool) -> int:
    """No trial that counts is no measurement; with ``strict``, each one must count."""
    from prony.archive import open_archive
    from prony.model import Ok

    with open_archive(out) as archive:
        outcomes = [record.trial.outcome for record in archive.trials()]
        missing = any(record.unavailable for record in archive.subjects().values())
    counts = [isinstance(outcome, Ok) for outcome in outcomes]
    failed = not any(counts) or (strict and (missing or not all(counts)))
    return ExitCode.COULD_NOT_MEASURE if failed else ExitCode.DONE


def _print_dry_run(task: "Study") -> None:
    from prony.catalog.launch import command_for_user
    from prony.host import available_cpus
    from prony.sandbox.placement import place

    plan = task.plan
    placement = place(available_cpus(), plan.cells[0].sandbox.share_cpus, plan.cells[0].engine.threads)
    typer.echo(
        f"{plan.title}\n"
        f"{len(plan.cells)} cells x {plan.blocks} blocks, seed {plan.seed}, profile {plan.profile}\n"
    )
    for cell in plan.cells:
        entry = task.catalog.server(cell.subject.server)
        command = command_for_user(entry, cell.subject, cell.subject.app.folder, len(placement.server_cpus))
        request = cell.workload.request
        typer.echo(f"{cell.subject.name}: {cell.workload.describe()}, {request.method} {request.path}")
        typer.echo(f"    {command.splitlines()[0]}")
    typer.echo(f"\nserver on CPUs {placement.server_cpus}, generator on CPUs {placement.generator_cpus}")
    typer.echo(f"about {len(plan.cells) * plan.blocks * _trial_s(plan) / 60:.0f} min, into {task.out}")

"""``prony run``: a study, a file, or a user's own app."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.applicable import (
    given,
    refuse_options_beside_resume,
    refuse_options_of_another_run,
    refuse_options_of_own_app,
)
from prony.cli.consent import Again
from prony.cli.measure import Ending, dry_run, end, measure, placement_of
from prony.cli.options import (
    MAX_SEED,
    MAX_THREADS,
    body_of,
    check_output,
    connections_of,
    duration_of,
    header_of,
    make_request,
    optional,
    rate_of,
    settings_of,
    wait_of,
)
from prony.cli.own_app import OwnApp, plan_of_app, variables
from prony.cli.protocol import ProtocolOptions, cross_checks_of, with_protocol
from prony.cli.resume import ALLOWED, Resumption, is_complete, resumed_study
from prony.cli.sandbox_options import SandboxOptions, SandboxWish, chosen_sandbox
from prony.cli.study_plan import plan_of_study
from prony.errors import ExitCode, UsageError
from prony.model import Arrivals, Interface, Network
from prony.units import SECOND_NS

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model import Plan, Request
    from prony.plan import PlanOptions
    from prony.runas import RunAs
    from prony.study import Study

__all__ = ["EPILOG", "run"]

EPILOG = """\
Examples:

  prony run embedded-servers                              a built-in study, quick profile

  prony run embedded-servers --only '*flask*' --repeats 10

  prony run my-study.toml --profile full --out result.prony

  prony run --app shop:app --servers gunicorn,waitress,uwsgi -c 10,100

  prony run --app shop:app --requirements requirements.txt --servers gunicorn,granian --rate 550

  prony run --app shop:app --servers gunicorn --set gunicorn.workers=4 --dry-run

  prony run --app shop.psgi --servers starman,twiggy,starman@nginx

  prony run --app page-64k --servers gunicorn,uwsgi      a built-in app: a page of 64 KiB

  prony run --command 'go=./shop {port}' --command 'node shop.js' --path /basket
"""

# Years of measuring, even of the shortest trials.
MAX_BLOCKS = 100_000
DEFAULT_SERVERS = "gunicorn,waitress,uwsgi"
_WARMUP_NS = 3 * SECOND_NS
Panel = "Your own app"


def run(
    context: typer.Context,
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
        int | None, typer.Option(min=1, max=MAX_BLOCKS, help="Blocks: how often every subject is measured.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="Add blocks until intervals are as narrow as this, such as 2%, or verdicts reached."
        ),
    ] = None,
    max_repeats: Annotated[
        int | None, typer.Option(help="With --precision: at most so many blocks, 10, 15 or 20 (20).")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="With --precision: begin no look that would end later, such as 30m.")
    ] = None,
    find_rate: Annotated[
        str | None,
        typer.Option(
            help="Search for each subject's highest rate that meets this: 'p99 < 50ms, errors < 0.1%'."
        ),
    ] = None,
    cross_check: Annotated[
        str | None, typer.Option(help="Measure each cell also with these generators, such as wrk,ab.")
    ] = None,
    no_calibration: Annotated[
        bool, typer.Option("--no-calibration", help="Leave out the reference server in each block.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the study in this archive, which was interrupted.")
    ] = None,
    trust_plan: Annotated[
        bool,
        typer.Option("--trust-plan", help="With --resume: agree to all that the archive would run or open."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the random order.")] = 1,
    out: Annotated[Path | None, typer.Option(help="The archive to write (NAME-DATE.prony here).")] = None,
    engine_threads: Annotated[
        int, typer.Option(min=1, max=MAX_THREADS, help="Worker threads of the load engine.")
    ] = 1,
    app: Annotated[
        str | None,
        typer.Option(
            help="Your application: module:attribute, a .psgi file, or the name of a built-in app.",
            rich_help_panel=Panel,
        ),
    ] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command",
            help="A program that listens on {port} (also in the variable PORT), NAME=PROGRAM ...; "
            "may be repeated.",
        ),
    ] = None,
    interface: Annotated[
        Interface | None,
        typer.Option(help="How servers call it (wsgi; asgi when all servers speak that, and not all wsgi)."),
    ] = None,
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
    warmup: Annotated[str | None, typer.Option(help="The same load before the window (3s).")] = None,
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
        Network | None, typer.Option(help="The server's network (a study: isolated; your own app: host).")
    ] = None,
    sandbox: Annotated[
        SandboxWish,
        typer.Option(
            help="process: CPUs by affinity; cgroup: control groups; auto: the strongest of them here; "
            "container: by Docker or Podman."
        ),
    ] = SandboxWish.AUTO,
    cpu_quota: Annotated[
        float | None,
        typer.Option("--cpus", min=0.01, help="The server's limit of CPUs, such as 0.5 or 2."),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="The server's limit of memory, such as 512M.")] = None,
    pids: Annotated[
        int | None,
        typer.Option(min=1, help="The server's limit of processes and threads."),
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
    json_to: Annotated[
        str | None,
        typer.Option("--json", help="Write the report as JSON to a file, or to standard output for -."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail (3) when a subject is unavailable or a trial does not count."),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Measure although figures may not be valid, or the machine changed; it is archived.",
        ),
    ] = False,
    show_only: Annotated[
        bool, typer.Option("--dry-run", help="Print cells, commands and time, and start nothing.")
    ] = False,
) -> int:
    """Measure a built-in study, a study's file, or your own app on several servers, and say which is best."""
    from prony.catalog.schema.loader import load_catalog
    from prony.model import EngineChoice
    from prony.plan import PlanOptions
    from prony.runas import resolve_user
    from prony.study import Study

    typed = given(context)
    check_output(json_to)
    known = load_catalog(tuple(catalog or ()))
    if resume is not None:
        refuse_options_beside_resume(typed, ALLOWED)
        headers = {name.lower(): value for name, value in map(header_of, header or ())}
        again = Again(
            app=app,
            folder=directory.expanduser().resolve(),
            commands=tuple(commands or ()),
            run_as=run_as,
            network=net.value if net else None,
            sandbox=sandbox.value if "sandbox" in typed else None,
        )
        wish = Resumption(
            *(resume, known, variables(env or (), env_file), headers, requirements, python, again),
            trust_plan=trust_plan,
            force=force,
        )
        return _go_on(wish, Ending(json_to, strict), show_only)
    if trust_plan:
        raise UsageError(
            "`--trust-plan`: is for a study that goes on", hint="prony run --resume FILE --trust-plan"
        )
    refuse_options_of_another_run(typed, study, app, commands or ())
    user = resolve_user(run_as)
    if app in known.apps and not commands:
        refuse_options_of_own_app(typed, str(app))
    chosen = chosen_sandbox(
        SandboxOptions(sandbox, net, cpu_quota, memory, pids, share_cpus, run_as),
        own_app=study is None and (bool(commands) or app not in known.apps),
    )
    options = PlanOptions(
        profile=profile,
        only=only,
        blocks=repeats,
        seed=seed,
        engine=EngineChoice(threads=engine_threads),
        sandbox=chosen.choice,
        settings=settings_of(settings or ()),
        calibrate=not no_calibration,
    )
    if study is not None:
        plan = plan_of_study(study, known, options)
    else:
        own = OwnApp(
            app=app,
            commands=tuple(commands or ()),
            interface=interface,
            folder=directory.expanduser().resolve(),
            servers=_servers(servers),
            connections=_connections(connections, rate),
            rate=optional(rate_of, "--rate", rate),
            arrivals=arrivals,
            duration_ns=optional(duration_of, "--duration", duration) or 10 * SECOND_NS,
            warmup_ns=_WARMUP_NS if warmup is None else wait_of("--warmup", warmup),
            timeout_ns=duration_of("--timeout", timeout),
            repeats=repeats or 3,
            request=_request(
                typed, app, known, make_request(method, path, header or (), body, keep_alive=True)
            ),
            expect_status=expect_status,
            expect_body=body_of("--expect-body", expect_body),
            environment=variables(env or (), env_file),
        )
        plan, known = plan_of_app(own, known, options)
    plan = with_protocol(
        plan, ProtocolOptions(precision, max_repeats, budget, find_rate, cross_check, repeats)
    )
    _check_settings(plan, options, known)
    _check_threads(plan, engine_threads)
    for option, file in (("--requirements", requirements), ("--python", python)):
        if file is not None and not file.exists():
            raise UsageError(f"`{option} {file}`: there is no such file")
    if python is not None:
        _check_readable(python, user)
    task = Study(
        *(plan, known, user, _archive(plan, out), requirements, python),
        sandbox=chosen,
        force=force,
        cross_checks=cross_checks_of(plan, cross_check),
    )
    return _do(task, Ending(json_to, strict), show_only)


def _do(task: "Study", ending: Ending, show_only: bool) -> int:
    if show_only:
        dry_run(task)
        return ExitCode.DONE
    return measure(task, ending)


def _go_on(wish: Resumption, ending: Ending, show_only: bool) -> int:
    """Go on with a study; one that ran to its end is only reported."""
    if is_complete(wish.file):
        typer.echo(f"`{wish.file}` is complete: there is nothing left to run", err=True)
        return end(wish.file, ending)
    return _do(resumed_study(wish), ending, show_only)


# --- options ----------------------------------------------------------------------------------------------


def _request(
    typed: Mapping[str, str], app: str | None, known: "Catalog", made: "Request"
) -> "Request | None":
    """Return what is asked: of a built-in app, unless the user says otherwise, its contract's first."""
    said = any(name in typed for name in ("path", "method", "header", "body"))
    return None if app in known.apps and not said else made


def _servers(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(f"`--servers {text}`: expected one or more servers, such as `gunicorn,waitress`")
    return tuple(dict.fromkeys(names))


def _connections(text: str | None, rate: str | None) -> tuple[int, ...] | None:
    counts = optional(connections_of, "-c", text)
    if rate is not None and counts is not None and len(counts) > 1:
        raise UsageError(
            f"`-c {text}`: with `--rate`, connections are only a limit; expected one count",
            hint="leave `--rate` out for a closed loop with a grid of connections",
        )
    return counts


def _check_readable(python: Path, user: "RunAs") -> None:
    from prony.catalog.install.access import first_unreadable

    blocked = first_unreadable(python, user)
    if blocked is not None:
        raise UsageError(
            f"`--python {python}`: the user `{user.name}`, which servers run as, cannot read it "
            f"(`{blocked}` is closed to it)",
            hint="choose another user with --run-as, or an environment in a folder that this user can read",
        )


def _check_threads(plan: "Plan", threads: int) -> None:
    """Refuse more threads than CPUs where they were asked for; a study's own may be what it is about."""
    cpus = len(placement_of(plan).generator_cpus)
    if threads > cpus:
        raise UsageError(
            f"`--engine-threads {threads}`: the generator has {cpus} CPU{'s' if cpus != 1 else ''} here; "
            f"expected at most {cpus}"
        )


def _check_settings(plan: "Plan", options: "PlanOptions", known: "Catalog") -> None:
    """Refuse a setting that nothing takes before anything is built or started for it."""
    from prony.catalog.schema.entry import FrontendEntry
    from prony.catalog.schema.settings import resolved_settings

    subjects = plan.subjects()
    for server in options.settings:
        if any(
            subject.frontend and server in (subject.frontend.entry, subject.frontend.name)
            for subject in subjects
        ):
            continue
        if isinstance(known.entry(server), FrontendEntry):
            raise UsageError(
                f"`--set {server}...`: no subject stands behind `{server}`, as in gunicorn@{server}"
            )
        entry, variant = known.find(server)
        if not any(subject.server == entry.name and variant in ("", subject.variant) for subject in subjects):
            names = ", ".join(dict.fromkeys(subject.name.partition("+")[0] for subject in subjects))
            typed = ", ".join(f"{server}.{key}={value}" for key, value in options.settings[server].items())
            raise UsageError(f"`--set {typed}`: no subject runs `{server}`; the servers are {names}")
    cpus = len(placement_of(plan).server_cpus)
    for subject in subjects:
        resolved_settings(known.server(subject.server), subject, cpus)
        if subject.frontend:
            resolved_settings(known.frontends[subject.frontend.entry], subject.frontend, cpus)


def _archive(plan: "Plan", out: Path | None) -> Path:
    """Return the file to write; one that cannot be is refused now, not when servers have been installed."""
    file = out or Path(f"{plan.name}-{time.strftime('%Y%m%d-%H%M%S')}.prony")
    if file.exists():
        raise UsageError(
            f"`{file}` exists already", hint="name another file with `--out`, or move that one away"
        )
    if not (file.parent.is_dir() and os.access(file.parent, os.W_OK | os.X_OK)):
        raise UsageError(f"`{file}`: `{file.parent}` is not a folder that can be written to")
    return file

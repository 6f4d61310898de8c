"""``prony run``: a study, a file, or a user's own app."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.applicable import given, refuse_options_beside_resume, refuse_options_of_another_run
from prony.cli.consent import Again
from prony.cli.flat import flattened
from prony.cli.measure import Ending, dry_run, end, placement_of, run_and_report
from prony.cli.options import check_output, duration_of, header_of, optional, settings_of
from prony.cli.pacing_option import pacing_of
from prony.cli.protocol import cross_checks_of, with_protocol
from prony.cli.resume import ALLOWED, Resumption, is_complete, resumed_study
from prony.cli.run_checks import archive_to_write, check_files, check_threads
from prony.cli.run_options import AppOptions, LoadOptions, OutputOptions, RunOptions, SureOptions, WhatOptions
from prony.cli.sandbox_options import SandboxOptions, chosen_sandbox
from prony.cli.talk import say
from prony.cli.variables import variables
from prony.errors import ExitCode

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model import Cell, Plan, SandboxKind
    from prony.plan import PlanOptions
    from prony.sandbox.choice import Chosen
    from prony.study import Study
    from prony.survey.survey import Survey

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


@flattened
def run(
    context: typer.Context,
    what: WhatOptions,
    own: AppOptions,
    load: LoadOptions,
    sure: SureOptions,
    sandbox: SandboxOptions,
    output: OutputOptions,
    study: Annotated[
        str | None, typer.Argument(help="A built-in study, or a TOML file.", show_default=False)
    ] = None,
) -> int:
    """Measure a built-in study, a study's file, or your own app on several servers, and report the best."""
    from prony.catalog.schema.loader import load_catalog

    options = RunOptions(given(context), study, what, own, load, sure, sandbox, output)
    check_output(output.json_to)
    known = load_catalog(tuple(what.catalog or ()))
    ending = Ending(output.json_to, output.strict, output.full, not output.no_html)
    if what.resume is not None:
        refuse_options_beside_resume(options.typed, ALLOWED)
        return _go_on(_resumption(options, known), ending, output.show_only)
    refuse_options_of_another_run(options, known.apps)
    return _do(_new_study(options, known), ending, output.show_only)


def _show_found(options: RunOptions, plan: "Plan", found: "Survey | None") -> None:
    """Print in two lines what was found of the user's own app; the study's begin adds how long it takes."""
    app = plan.cells[0].subject.app
    if options.study is not None or options.own.app is None or found is None:
        return
    interface = next(iter(app.targets))
    how = f"{interface} ({found.reason})" if found.reason else f"taken as {interface} (--interface)"
    needs = f"packages of {found.dependencies.source}" if found.dependencies else "no packages"
    needs = "packages as typed" if options.own.requirements or options.own.python else needs
    servers = ", ".join(dict.fromkeys(subject.server for subject in plan.subjects()))
    cell = plan.cells[0]
    request = cell.workload.request
    say(f"found {found.target} in {app.folder}: {how}; {needs}")
    say(f"on {servers}; {cell.describe_load()}, {request.method} {request.path}")


def _do(task: "Study", ending: Ending, show_only: bool) -> int:
    if show_only:
        dry_run(task)
        return ExitCode.DONE
    return run_and_report(task, ending)


# --- a study that continues -------------------------------------------------------------------------------


def _resumption(options: RunOptions, known: "Catalog") -> Resumption:
    """Return the options typed beside ``--resume``.

    *Errors*: UsageError for an invalid header or variable.
    """
    own, what, sandbox = options.own, options.what, options.sandbox
    assert what.resume is not None
    return Resumption(
        file=what.resume,
        known=known,
        environment=variables(own.env or (), own.env_file),
        headers={name.lower(): value for name, value in map(header_of, options.load.header or ())},
        requirements=own.requirements,
        python=own.python,
        again=Again(
            app=_target(options, known),
            folder=own.folder,
            commands=tuple(own.commands or ()),
            run_as=sandbox.run_as,
            network=sandbox.net.value if sandbox.net else None,
            sandbox=sandbox.sandbox.value if "sandbox" in options.typed else None,
        ),
        trust_plan=what.trust_plan,
        ready_timeout_ns=optional(duration_of, "--ready-timeout", options.load.ready_timeout),
        force=options.sure.force,
    )


def _target(options: RunOptions, known: "Catalog") -> str | None:
    """Return the typed app with its attribute, which need not be typed."""
    found = _survey(options, known, declared=True)
    return found.target if found else options.own.app


def _go_on(wish: Resumption, ending: Ending, show_only: bool) -> int:
    """Continue a study; a complete one is only reported, by a dry run without its page."""
    if is_complete(wish.file):
        say(f"`{wish.file}` is complete: no trial is left to run")
        return end(wish.file, replace(ending, page=ending.page and not show_only))
    return _do(resumed_study(wish), ending, show_only)


# --- a new study ------------------------------------------------------------------------------------------


def _new_study(options: RunOptions, known: "Catalog") -> "Study":
    """Return the study that the options describe, checked for this machine.

    *Errors*: UsageError for wrong options, HostError for what this machine lacks.
    """
    from prony.calibration import kept_fitness
    from prony.catalog.schema.asked import check_settings
    from prony.runas import resolve_user
    from prony.study import Study
    from prony.study.found import declared_in

    user = resolve_user(options.sandbox.run_as)
    is_own = options.study is None and (bool(options.own.commands) or options.own.app not in known.apps)
    chosen = chosen_sandbox(options.sandbox, own_app=is_own, named=_named_sandbox(options, known))
    asked = _plan_options(options, chosen)
    typed = options.own.requirements is not None or options.own.python is not None
    found = _survey(options, known, declared=typed)
    plan, known = _plan(options, known, asked, found)
    plan = with_protocol(plan, options.sure, options.load.find_rate)
    check_settings(asked.settings, plan.subjects(), known, len(placement_of(plan).server_cpus))
    check_threads(plan, options.load.engine_threads)
    check_files(options.own, user)
    if not options.output.show_only:
        _show_found(options, plan, found)
    return Study(
        plan=plan,
        catalog=known,
        user=user,
        out=archive_to_write(plan, options.output.out),
        requirements_file=options.own.requirements,
        python=options.own.python,
        declared=declared_in(options.own.folder, found),
        ready_timeout_ns=optional(duration_of, "--ready-timeout", options.load.ready_timeout),
        sandbox=chosen,
        force=options.sure.force,
        cross_checks=_cross_checks(options, plan, known),
        fitness=partial(kept_fitness, user.cache),
    )


def _named_sandbox(options: RunOptions, known: "Catalog") -> "SandboxKind | None":
    from prony.study.named import sandbox_of_study

    return None if options.study is None else sandbox_of_study(options.study, known)


def _cross_checks(options: RunOptions, plan: "Plan", known: "Catalog") -> "tuple[Cell, ...]":
    """Return the typed cross-checks, else those of the study's profile; a search has none.

    *Errors*: UsageError for an unknown generator.
    """
    from prony.study.named import checks_of_study

    typed = options.sure.cross_check
    if typed is not None or options.study is None or plan.design.find_rate:
        return cross_checks_of(plan, typed)
    return checks_of_study(options.study, known, plan)


def _plan_options(options: RunOptions, chosen: "Chosen") -> "PlanOptions":
    from prony.model import EngineChoice
    from prony.plan import PlanOptions

    pacing = pacing_of(options.load.pacing, shares_cpus=options.sandbox.share_cpus)
    return PlanOptions(
        profile=options.what.profile,
        only=options.what.only,
        blocks=options.sure.repeats,
        seed=options.sure.seed,
        engine=EngineChoice(threads=options.load.engine_threads, pacing=pacing),
        sandbox=chosen.choice,
        settings=settings_of(options.what.settings or ()),
        calibrate=not options.sure.no_calibration,
    )


def _survey(options: RunOptions, known: "Catalog", *, declared: bool) -> "Survey | None":
    """Return what the folder of the user's own app says of it; null for what has none. ``declared``: what it
    needs is said elsewhere.

    *Errors*: UsageError as `survey_of`.
    """
    from prony.study.found import survey_of

    own = options.own
    if options.study is not None or own.app is None or own.app in known.apps or own.app.endswith(".psgi"):
        return None
    return survey_of(own.folder, own.app, declared=declared)


def _plan(
    options: RunOptions, known: "Catalog", asked: "PlanOptions", found: "Survey | None"
) -> "tuple[Plan, Catalog]":
    """Return the plan, and the catalogue with everything that it names."""
    from prony.cli.own_app import own_app
    from prony.study.named import plan_of_study
    from prony.study.own_app import plan_of_app

    if options.study is not None:
        return plan_of_study(options.study, known, asked), known
    return plan_of_app(own_app(options, known, found), known, asked)

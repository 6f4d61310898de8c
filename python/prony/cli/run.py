"""``prony run``: a study, a file, or a user's own app."""

import shlex
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.applicable import given, refuse_options_of_another_run, refuse_options_of_own_apps
from prony.cli.flat import flattened
from prony.cli.found_app import AskedStudy, Found, asked_study, found_app, in_folder_of_app, wishes_of
from prony.cli.load_options import AskOptions, CheckOptions
from prony.cli.measure import dry_run, end, run_and_report
from prony.cli.options import check_output, connections_of, duration_of, optional, pacing_of, studies_to
from prony.cli.protocol import cross_checks_of, in_usual_time, with_length, with_protocol
from prony.cli.request_files import FileOptions, RequestFiles, in_plan
from prony.cli.run_checks import (
    archive_to_write,
    asked_fleet,
    check_files,
    check_mix,
    check_streams,
    check_threads,
    cpus_of,
    goes_on,
    is_complete,
    reached_by,
    shared_by,
)
from prony.cli.run_options import AppOptions, LoadOptions, OutputOptions, RunOptions, SureOptions, WhatOptions
from prony.cli.sandbox_options import SandboxOptions, chosen_sandbox, rules_of
from prony.cli.talk import say
from prony.cli.variables import again_command, check_variables, refuse_masked, settings_of
from prony.core.errors import ExitCode, UsageError
from prony.plan.factors import OF_APP, OF_SANDBOX, WORKERS, asks_for_workers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prony.catalog.discover.current import Current
    from prony.catalog.schema.loader import Catalog
    from prony.core.users import RunAs
    from prony.model.plan import Cell, Plan
    from prony.model.workload import EngineChoice
    from prony.plan.build import PlanOptions
    from prony.plan.factors import Choice
    from prony.sandbox.choice import Chosen
    from prony.study import Study
    from prony.study.own_app import OwnApp
    from prony.study.task import OwnPackages

EPILOG = """\
Examples:
  prony run embedded-servers                              a built-in study, quick profile
  prony run embedded-servers --only '*flask*' --repeats 10
  prony run embedded-servers --only 'tornado*' --only 'wsgiref*'
  prony run my-study.toml --profile full --out result.prony
  prony run wsgi-servers --profile full -c 100,10000      only these of its loads
  prony run --app shop:app --servers gunicorn,waitress,uwsgi -c 10,100
  prony run --app shop:app --servers gunicorn,waitress,uwsgi --for 5m
  prony run --app shop:app --requirements requirements.txt --servers gunicorn,granian --rate 550
  prony run --app shop:app --servers gunicorn,uwsgi --path /=9 --path /cart=1    a mix of paths
  prony run --app shop:app --servers gunicorn,uwsgi --requests-from paths.csv    the requests of a file
  prony run --app shop:app --servers gunicorn,granian --rate 550 --groups regions.toml    users near and far
  prony run --app shop:app --servers gunicorn --set gunicorn.workers=4 --dry-run
  prony run --app shop:app --servers gunicorn --set gunicorn.workers=2,4,8 --set gunicorn.threads=1,8
  prony run --app shop:app --servers uvicorn,granian --tls-cost
  prony run --app shop:app --fleet hosts.toml --listen 192.0.2.1    generators on other machines
  prony run --app shop:app --target me@server.example    servers there, the load from here
  prony run --app shop.psgi --servers starman,twiggy,starman@nginx
  prony run --app page-64k --servers gunicorn,uwsgi      a built-in app: a page of 64 KiB
  prony run --app .                                       what the folder has: Django, Go, Node.js, PHP
  prony run --command 'go=./shop {port}' --command 'node shop.js' --path /basket
"""


@flattened
def run(
    context: typer.Context,
    what: WhatOptions,
    own: AppOptions,
    load: LoadOptions,
    ask: AskOptions,
    files: FileOptions,
    check: CheckOptions,
    sure: SureOptions,
    sandbox: SandboxOptions,
    output: OutputOptions,
    study: Annotated[
        str | None,
        typer.Argument(
            help="A built-in study, or a TOML file.", show_default=False, autocompletion=studies_to
        ),
    ] = None,
) -> int:
    """Measure a built-in study, a study's file, or your own app on several servers, and report the best."""
    from prony.catalog.schema.loader import load_catalog

    options = RunOptions(given(context), study, what, own, load, ask, check, sure, sandbox, output)
    files.check(options.typed, is_mix=False)
    ask.check(keeps=ask.keep_alive is not False)
    check_output(output.json_to)
    known = load_catalog(tuple(what.catalog or ()))
    if what.target is not None:
        from prony.cli.run_target import run_there

        status, out = run_there(context, options, known)
        if not out.exists():
            return status
        # Without a valid reply the report is the reason, and `end` has the status of it.
        return end(out, output, 0 if status == ExitCode.COULD_NOT_MEASURE else status)
    refuse_options_of_another_run(options, known.apps)
    options = in_folder_of_app(options)
    refuse_masked(own.env or (), ask.header or ())
    requests = RequestFiles(files)
    context.call_on_close(requests.close)
    return _do(study_of(options, known, requests), output)


def _show_found(options: RunOptions, plan: "Plan", found: Found) -> None:
    """Print in two lines what was found of the user's own app; the study's begin adds how long it takes."""
    words = found.words(options.own, plan.cells[0].subject.app)
    if not words:
        return
    cell = plan.cells[0]
    what = (found.app.target or cell.subject.app.name) if found.app else cell.subject.app.title
    what = cell.subject.app.name if found.program else what
    servers = ", ".join(dict.fromkeys(one.name.partition("+")[0] for one in plan.subjects()))
    say(f"found {what} in {cell.subject.app.folder}{words}")
    say(f"on {servers}; {cell.describe()}")


def _do(task: "Study", output: OutputOptions) -> int:
    """Run a study or show it; a complete one is only reported, by a dry run without its page."""
    if task.resumes and is_complete(task.out):
        say(f"`{task.out}` is complete: no trial is left to run")
        return end(task.out, replace(output, no_html=output.no_html or output.show_only))
    if output.show_only:
        dry_run(task)
        return ExitCode.DONE
    return run_and_report(task, output)


def study_of(
    options: RunOptions, known: "Catalog", requests: RequestFiles, found: Found | None = None
) -> "Study":
    """Return the study that the options describe, checked for this machine. ``found``: what the app's folder
    says, where it was read before.

    *Errors*: UsageError for wrong options, HostError for what this machine lacks.
    """
    from prony.catalog.schema.loader import check_settings
    from prony.core.users import resolve_user
    from prony.plan.build import narrowed, with_generator
    from prony.study import Study
    from prony.study.calibration import kept_fitness

    rules = rules_of(options.sandbox.build_limits, trusted=options.sandbox.trust_build)
    user = resolve_user(options.sandbox.run_as, rules)
    study = _asked_study(options, known, user)
    known = study.known if study else known
    of_app = bool(options.own.commands) or options.own.app not in known.apps
    settings = settings_of(options.what.settings or (), partial(_is_text, known))
    check_variables(settings.get(OF_APP, {}))
    chosen = chosen_sandbox(
        options.sandbox,
        settings.get(OF_SANDBOX),
        own_app=study.is_own if study else of_app,
        named=study.source.document.sandbox.kind if study else None,
    )
    fleet = asked_fleet(options.load)
    chosen = reached_by(fleet, chosen, options.load, options.sandbox)
    asked = replace(_plan_options(options, chosen, settings), requests=requests.of_study(options.study or ""))
    found = found or found_app(options, known)
    wishes = () if options.study is not None else wishes_of(options, known, found)
    plan, known = _plan(options, known, asked, study or wishes)
    if study is not None and options.load.engine is not None:
        plan = with_generator(plan, _engine(options))
        plan = narrowed(plan, _only(options)) if _only(options) else plan
    plan = with_protocol(plan, options.sure, options.load.find_rate)
    plan = _without_doubles(plan, check_settings(asked.settings, plan, known, cpus_of(plan)))
    check_threads(plan, options.load.engine_threads)
    plan = in_plan(plan, requests, any(name.startswith("expect_body") for name in options.typed))
    check_mix(plan, options.load.engine)
    check_streams(plan, known, options.load.streams)
    check_files(options.own, user)
    before_each = _before_each(options.own.before_each)
    before = (f"before each trial: {shlex.join(before_each)}",) if before_each else ()
    plan = replace(plan, notes=(*plan.notes, *before, *_of_cpus(options, plan, found.current)))
    for remark in (*study.said, *before) if study else (*plan.notes, *found.remarks):
        say(remark)
    if not options.output.show_only:
        _show_found(options, plan, found)
    checks, out = _cross_checks(options, plan, study), archive_to_write(plan, options.output.out)
    noted, sure = len(plan.notes), _without_rounds(options.sure) if before_each else options.sure
    may_shorten = _has_usual_lengths(options)
    plan = with_length(plan, known, checks, sure, may_shorten=may_shorten)
    # Of programs that the user names, some compile while they run: they keep their warm-up.
    if of_app and study is None and may_shorten and not options.own.commands:
        plan = in_usual_time(plan, known, checks, sure)
    for remark in plan.notes[noted:]:
        say(remark)
    return Study(
        plan=plan,
        catalog=known,
        user=user,
        out=out,
        packages=study.packages if study else _packages(options.own, plan, wishes),
        ready_timeout_ns=optional(duration_of, "--ready-timeout", options.load.ready_timeout),
        sandbox=chosen,
        force=options.sure.force,
        cross_checks=checks,
        resumes=goes_on(out, plan, checks),
        before_each=before_each,
        fitness=partial(kept_fitness, user.cache),
        fleet=fleet,
        requests=requests.open_files,
        # What the other side of `--target` is asked, nobody types.
        command="" if fleet and fleet.pipe else again_command(),
    )


def _asked_study(options: RunOptions, known: "Catalog", user: "RunAs") -> "AskedStudy | None":
    if options.study is None:
        return None
    asked = asked_study(options.study, known, user, options.own.env or (), options.own.env_file)
    if not asked.is_own:
        refuse_options_of_own_apps(options.typed, options.study)
    return asked


def _packages(own: AppOptions, plan: "Plan", wishes: "Sequence[OwnApp]") -> "Mapping[str, OwnPackages]":
    """Return what each of the apps needs, by its name."""
    from prony.study.app_folder import declared_in
    from prony.study.task import own_packages

    found = {str(one.folder): declared_in(one.folder, one.found) for one in wishes}
    apps = {subject.app.name: found.get(subject.app.folder) for subject in plan.subjects()}
    return {name: own_packages(own.requirements, one, own.python) for name, one in apps.items()}


def _of_cpus(options: RunOptions, plan: "Plan", current: "Current | None") -> tuple[str, ...]:
    """Return for how many CPUs an answer on workers holds, where servers do not have all of them."""
    from prony.machine.cpus import available_cpus

    if options.study is not None:
        return ()
    least, there = min(cpus_of(plan).values()), len(available_cpus())
    said = current.options if current else {}
    typed = next((said[f"--{key}"] for key in sorted(WORKERS) if f"--{key}" in said), "")
    more = typed.isdecimal() and int(typed) > least
    if least >= there or not (more or asks_for_workers(plan.subjects(), least)):
        return ()
    return (
        f"servers have {least} of {there} CPUs here, and how many workers are best depends on that: "
        "--share-cpus gives them all, with the generator on one",
    )


def _without_rounds(sure: SureOptions) -> SureOptions:
    """Return the options with trials in turns: a command before each would change what servers that stay use.

    *Errors*: UsageError where rounds are typed.
    """
    reason = "`--before-each` runs while other servers stay"
    if sure.rounds:
        raise UsageError(
            f"`--rounds {sure.rounds}`: the servers must be measured in turns: {reason}",
            hint="leave out --rounds",
        )
    if sure.length is not None or sure.see is not None:
        say(f"no rounds of short windows: {reason}")
    return replace(sure, rounds=0)


def _before_each(typed: str | None) -> tuple[str, ...]:
    """Return the words of the command that runs before each trial.

    *Errors*: UsageError for one that only a shell could read.
    """
    if typed is None:
        return ()
    try:
        words = tuple(shlex.split(typed))
    except ValueError as error:
        raise UsageError(f"`--before-each {typed}`: {error}") from None
    for_shell = next((one for one in words if set(one) <= set("|&;<>")), None)
    if not words or for_shell is not None:
        wrong = f"no shell reads it, and `{for_shell}` is of one" if words else "it is empty"
        raise UsageError(
            f"`--before-each {typed}`: {wrong}; expected a program and its arguments",
            hint="write several commands into a script, and name that: --before-each ./fill.sh",
        )
    return words


def _has_usual_lengths(options: RunOptions) -> bool:
    load = options.load
    return load.duration is None and load.warmup is None and options.sure.pilot is None


def _cross_checks(options: RunOptions, plan: "Plan", study: "AskedStudy | None") -> "tuple[Cell, ...]":
    """Return the typed cross-checks, else those of the study's profile; a search has none.

    *Errors*: UsageError for an unknown generator.
    """
    from prony.study.task import checks_of_source

    typed = options.sure.cross_check
    if typed is not None or study is None or plan.design.find_rate:
        return cross_checks_of(plan, typed)
    return checks_of_source(study.source, plan)


def _without_doubles(plan: "Plan", left: "Plan") -> "Plan":
    """Return the plan that is left, and report what was left out."""
    names = {subject.name for subject in left.subjects()}
    for name in (subject.name for subject in plan.subjects() if subject.name not in names):
        say(f"{name} is the same as another subject with the CPUs of this machine: left out")
    return left


def _is_text(known: "Catalog", server: str, key: str) -> bool:
    """Return whether a setting is a free text, as far as the catalogue knows it."""
    from prony.catalog.schema.entry import TextSetting

    try:
        return isinstance(known.entry(server).settings.get(key), TextSetting)
    except UsageError:
        return False


def _plan_options(
    options: RunOptions,
    chosen: "Chosen",
    settings: "Mapping[str, Mapping[str, Choice]]",
) -> "PlanOptions":
    from prony.model.workload import EngineChoice
    from prony.plan.build import PlanOptions

    engine = _engine(options)
    return PlanOptions(
        profile=options.what.profile,
        # With one more generator the plan is narrowed when it is there.
        only=() if options.study is not None and options.load.engine is not None else _only(options),
        connections=_levels(options),
        blocks=options.sure.repeats,
        seed=options.sure.seed,
        engine=shared_by(
            engine if options.study is None else replace(engine, name=EngineChoice().name, command=""),
            options.load.fleet,
        ),
        sandbox=chosen.choice,
        settings=settings,
        entrance=_tls(options),
        calibrate=not options.sure.no_calibration,
    )


def _only(options: RunOptions) -> tuple[str, ...]:
    return tuple(options.what.only or ())


def _levels(options: RunOptions) -> tuple[int, ...] | None:
    """Return which of a study's closed loops alone are measured; None: all, or there is no study."""
    return None if options.study is None else optional(connections_of, "-c", options.load.connections)


def _tls(options: RunOptions) -> "Mapping[str, Choice]":
    """Return the settings of what clients speak to.

    *Errors*: UsageError for options that exclude each other.
    """
    from prony.catalog.schema.settings import TLS, TLS_OFF
    from prony.model.address import TlsKey

    if options.what.tls and options.what.tls_cost:
        raise UsageError(
            "`--tls` and `--tls-cost` exclude each other: one serves everything over TLS, the other compares "
            "with and without"
        )
    if options.what.tls_cost:
        return {TLS: (TLS_OFF, str(TlsKey.ECDSA))}
    return {TLS: str(TlsKey.ECDSA)} if options.what.tls else {}


def _engine(options: RunOptions) -> "EngineChoice":
    """Return the typed generator.

    *Errors*: UsageError for a name that Prony does not know, or a command with unknown placeholders.
    """
    from prony.engine.own_program import check_command
    from prony.engine.registry import open_engine
    from prony.model.workload import EngineChoice

    pacing = pacing_of(options.load.pacing, shares_cpus=options.sandbox.share_cpus)
    usual = EngineChoice(threads=options.load.engine_threads, pacing=pacing)
    if options.load.engine is None:
        return usual
    chosen = usual.named(options.load.engine)
    if chosen.command:
        check_command(chosen.command)
    open_engine(chosen)
    return chosen


def _plan(
    options: RunOptions, known: "Catalog", asked: "PlanOptions", wanted: "AskedStudy | Sequence[OwnApp]"
) -> "tuple[Plan, Catalog]":
    """Return the plan, and the catalogue with everything that it names."""
    from prony.study.own_app import plan_of_app
    from prony.study.task import plan_of_source

    if isinstance(wanted, AskedStudy):
        return plan_of_source(options.study or "", wanted.source, known, asked), known
    first, *others = wanted
    return plan_of_app(first, known, asked, others)

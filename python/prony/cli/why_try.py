"""``prony why --try``: the cause that is named, tried by turning its setting.

An archive may be anybody's, so it says only which subject of this machine's catalogue is meant, under which
load: server, app and setting are the catalogue's, and an app of the user's own is the one that was typed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from prony.cli.load_options import AskOptions
from prony.cli.request_files import RequestFiles
from prony.cli.run import study_of
from prony.cli.run_checks import cpus_of
from prony.cli.run_options import AppOptions, LoadOptions, OutputOptions, RunOptions, SureOptions, WhatOptions
from prony.cli.sandbox_options import SandboxOptions
from prony.cli.talk import show
from prony.cli.trying import Attempt, WhyOptions, run_attempt
from prony.core.errors import ExitCode, UsageError
from prony.core.units import MILLISECOND_NS
from prony.model.workload import ClosedLoop, DurationStop, OpenLoop, Workload
from prony.plan.factors import variables_of, without_levels

if TYPE_CHECKING:
    from prony.catalog.schema.entry import Setting
    from prony.catalog.schema.loader import Catalog
    from prony.diagnosis.evidence import Finding
    from prony.model.plan import Cell
    from prony.model.subject import Subject
    from prony.reading.limits import LimitedCell

_FEWER = "fewer workers"


def try_cause(found: "Sequence[LimitedCell]", again: "WhyOptions") -> int:
    """Turn the setting of the one cause that is named, and print whether that helps.

    *Errors*: UsageError for several subjects or loads, or an app that was not typed; as `run_attempt`.
    """
    from prony.catalog.schema.loader import load_catalog
    from prony.figures.answer import deciding_metrics

    known = load_catalog(())
    one = _one(found)
    cause = one.diagnosis.cause.finding if one.diagnosis and one.diagnosis.cause else None
    cell = next(cell.cell for cell in one.group.cells if cell.name == one.name)
    if cause is None or cause.knob is None or cell.subject.server not in known.servers:
        return _cannot(one, cause)
    server, key = cause.knob.entry, cause.knob.setting
    setting = known.servers[server].settings.get(key) if server == cell.subject.server else None
    if setting is None:
        return _cannot(one, cause)
    template = study_of(_as_run(cell, known, again), known, RequestFiles())
    here = template.plan.cells[0]
    value = _turned(setting, _now(here.subject, known, key, cpus_of(template.plan)), cause)
    if value is None:
        return _cannot(one, cause)
    attempt = Attempt(here, key, value, deciding_metrics(here)[0], again.pairs)
    return run_attempt(template, attempt, again.out, again.json_to)


def _one(found: "Sequence[LimitedCell]") -> "LimitedCell":
    if len(found) == 1:
        return found[0]
    names = ", ".join(dict.fromkeys(f"{one.name} ({one.load})" for one in found))
    raise UsageError(
        f"`--try` takes one subject under one load; found {names}",
        hint="name a subject of a study with one load",
    )


def _cannot(one: "LimitedCell", cause: "Finding | None") -> int:
    """Print that nothing is turned, and what would show more."""
    from prony.report.findings import advice_words

    if cause is None:
        show(f"cannot tell: no cause is named for {one.name}")
        return ExitCode.COULD_NOT_MEASURE
    advice = str(advice_words(cause, "")) or cause.kind.meaning.experiment.words
    show(f"cannot tell: no setting of the catalogue does this for {one.name}: {advice}")
    show("measure it before and after you change it, then: prony compare BEFORE.prony AFTER.prony")
    return ExitCode.COULD_NOT_MEASURE


def _now(subject: "Subject", known: "Catalog", key: str, cpus: "Mapping[str, int]") -> "int | str | None":
    from prony.catalog.schema.settings import resolved_settings

    return resolved_settings(known.server(subject.server), subject, cpus[subject.name]).get(key)


def _turned(setting: "Setting", now: "int | str | None", cause: "Finding") -> str | None:
    """Return the value to try: twice as many, or half where fewer are advised; what is on off, and off on;
    a limit far away. Null: nobody knows which.
    """
    from prony.catalog.schema.entry import BoolSetting, IntSetting
    from prony.diagnosis.knobs import Turned

    turned = cause.advice.turned if cause.advice else ()
    match setting:
        case BoolSetting():
            return "off" if now else "on"
        case IntSetting() if isinstance(now, int):
            wanted = now // 2 if cause.advice and cause.advice.value == _FEWER else 2 * max(now, 1)
            # A worker's life without an end, as far as any trial sees.
            wanted = setting.max if Turned.LIFE in turned else wanted
            kept = max(setting.min, min(setting.max, wanted))
            return None if kept == now else str(kept)
        case _:
            return None


# --- the same again ---------------------------------------------------------------------------------------


def _as_run(cell: "Cell", known: "Catalog", again: "WhyOptions") -> RunOptions:
    """Return the options of a study of the same subject under the same load, as somebody would type them."""
    subject, load = cell.subject, _load(cell.workload)
    name = _app(subject, known, again)
    return RunOptions(
        typed={"path": "--path", "method": "--method"},
        what=WhatOptions(settings=list(_settings(subject, known))),
        own=AppOptions(
            app=name,
            servers=without_levels(subject).removesuffix(f"+{subject.app.name}"),
            directories=[again.directory],
            no_current=True,
        ),
        load=load,
        ask=_ask(cell.workload),
        sure=SureOptions(repeats=again.pairs, pilot="0s", no_calibration=True),
        sandbox=_sandbox(cell),
        output=OutputOptions(show_only=True),
    )


def _app(subject: "Subject", known: "Catalog", again: "WhyOptions") -> str:
    targets = {*subject.app.targets.values(), subject.app.factory, subject.app.factory.removesuffix("()")}
    if again.app is None and subject.app.name in known.apps:
        return subject.app.name
    if again.app in targets:
        return str(again.app)
    raise UsageError(
        f"{subject.name} is an app of its owner's, and no archive says what is executed here",
        hint="if it is yours, type it: --app module:attribute --dir FOLDER",
    )


def _settings(subject: "Subject", known: "Catalog") -> Iterator[str]:
    """Yield the subject's settings as they are typed.

    *Errors*: UsageError for variables and free texts: they are executed, or read as files, by what runs.
    """
    from prony.catalog.schema.entry import TextSetting

    kinds = known.servers[subject.server].settings
    if variables_of(subject.levels) or any(
        isinstance(kinds.get(key), TextSetting) for key in subject.settings
    ):
        raise UsageError(f"{subject.name} has variables or texts of its own, which no archive sets here")
    yield from (f"{subject.server}.{key}={value}" for key, value in subject.settings.items())
    if subject.frontend:
        yield from (
            f"{subject.frontend.entry}.{key}={value}" for key, value in subject.frontend.settings.items()
        )


def _load(workload: "Workload") -> LoadOptions:
    """Return the load as options.

    *Errors*: UsageError for one that `prony run --app` cannot ask for.
    """
    stop, request = workload.stop, workload.request
    more = workload.mix or workload.groups or workload.follow or workload.connection_requests
    if more or workload.connection_age_ns or not isinstance(stop, DurationStop) or request.body:
        raise UsageError(f"`--try`: {workload.describe()} cannot be asked for again here")
    closed = workload.loop.connections if isinstance(workload.loop, ClosedLoop) else None
    rate = workload.loop.rate_per_s if isinstance(workload.loop, OpenLoop) else None
    return LoadOptions(
        connections=None if closed is None else str(closed),
        streams=workload.streams,
        rate=None if rate is None else f"{rate:g}",
        duration=_typed(stop.duration_ns),
        warmup=_typed(workload.warmup_ns),
        timeout=_typed(workload.timeout_ns),
    )


def _ask(workload: "Workload") -> AskOptions:
    request = workload.request
    return AskOptions(
        path=[request.path],
        method=request.method,
        header=[f"{name}: {value}" for name, value in request.headers],
        keep_alive=request.keep_alive,
    )


def _typed(duration_ns: int) -> str:
    return f"{duration_ns // MILLISECOND_NS}ms"


def _sandbox(cell: "Cell") -> SandboxOptions:
    chosen = cell.sandbox
    memory = None if chosen.memory_bytes is None else f"{chosen.memory_bytes}B"
    return SandboxOptions(cpu_quota=chosen.cpu_quota, memory=memory, share_cpus=chosen.share_cpus)

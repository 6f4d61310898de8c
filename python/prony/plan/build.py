"""A plan's text and a catalogue -> cells and blocks.

Pure: reads no file and starts nothing. A study in the catalogue, a user's own file and the options of an ad
hoc run all become a `StudyDocument`, and from there one path leads to the `Plan`.

>>> cross_check_cells(Plan("p", "", "", "quick", (), 1, 1), ("wrk",))
()
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

from prony.core.errors import UsageError
from prony.model.exchange import Request
from prony.model.plan import TOLERANT, Cell, Claim, Design, Needs, Original, Plan
from prony.model.sandbox import SandboxChoice
from prony.model.subject import App, Frontend, Interface, Subject
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, OpenLoop, Pacing, Workload
from prony.plan.document import (
    CalibrationDocument,
    ClaimDocument,
    DesignDocument,
    NeedsDocument,
    ProfileDocument,
    SourceDocument,
    StudyDocument,
    SubjectDocument,
    WorkloadDocument,
)
from prony.plan.factors import OF_APP, OF_SANDBOX, Choice, Choices, Seated, check_size, seated
from prony.plan.loads import asking, engines_of, in_profile, is_skipped, workloads_of

CALIBRATOR, CALIBRATOR_APP = "reference", "hello"
"""The server, and the app whose replies it gives, whose figures show a drift of the machine."""


class CatalogView(Protocol):
    """What a plan needs of the catalogue."""

    def app(self, name: str) -> App:
        """Return the app of this name; UsageError when there is none."""
        ...

    def interfaces(self, server: str) -> Sequence[Interface]:
        """Return the interfaces that a server or a variant of one speaks; UsageError when there is none."""
        ...

    def split(self, server: str) -> tuple[str, str]:
        """Return entry and variant of a name: ``gunicorn-gthread`` -> ``("gunicorn", "gthread")``."""
        ...

    def serves(self, server: str) -> Sequence[str]:
        """Return the apps whose replies a server gives by itself; UsageError when there is none."""
        ...

    def behind(self, server: str) -> str | None:
        """Return a frontend without which the server cannot be used; UsageError when there is none."""
        ...

    def of_app(self, server: str, app: str) -> str:
        """Return the name of the server for this app, which may have a command of its own."""
        ...

    def frontend(self, name: str) -> Frontend:
        """Return the frontend of this name; UsageError when there is none."""
        ...


RequestsOf = Callable[[WorkloadDocument, Workload], Workload]
"""Returns a load of a document with the requests of the file that the document names."""


def _of_no_file(part: WorkloadDocument, load: Workload) -> Workload:
    if part.needs_files:
        raise UsageError(f"`{part.file or 'body'}`: only `prony run` on this machine sends what is in files")
    return load


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the command line adds to a document. ``settings``: overridden settings by the name of a server or
    a frontend, or those of ``sandbox`` or ``env``; ``entrance``: of whatever receives the load, the frontend
    or else the server.

    ``only``: patterns of the subjects that alone are measured, ``connections``: so many of closed loops;
    empty and null: all.
    ``calibrate``: with or without calibration, regardless of the document; null: as the document says.
    ``requests``: reads the files that loads name.
    """

    profile: str | None = None
    only: tuple[str, ...] = ()
    connections: tuple[int, ...] | None = None
    blocks: int | None = None
    seed: int = 1
    engine: EngineChoice = EngineChoice()
    sandbox: SandboxChoice = SandboxChoice()
    request: Request | None = None
    settings: Mapping[str, Mapping[str, Choice]] = field(default_factory=dict)
    entrance: Mapping[str, Choice] = field(default_factory=dict)
    calibrate: bool | None = None
    requests: RequestsOf = _of_no_file


def make_plan(
    document: StudyDocument,
    text: str,
    catalog: CatalogView,
    options: PlanOptions,
    originals: tuple[Original, ...] = (),
) -> Plan:
    """Return the resolved plan of ``document``: every subject under each of its loads, all in one pacing.

    *Errors*: UsageError for a name that is not in the catalogue, an app without the server's interface, an
    ``only`` that matches no subject, or ``connections`` that no load has.
    """
    profile_name, profile = document.profile(options.profile)
    if profile.share_cpus:
        options = replace(options, sandbox=replace(options.sandbox, share_cpus=True))
    cells = tuple(_cells(document, profile_name, catalog, options))
    plan = Plan(
        name=document.name,
        title=document.title,
        text=text,
        profile=profile_name,
        cells=cells,
        blocks=options.blocks or profile.blocks,
        seed=options.seed,
        question=document.question,
        source=_source(document),
        notes=(*document.notes, *_as_published(profile, options.blocks or profile.blocks)),
        design=_design(document, profile),
        claims=tuple(_claim(claim, document) for claim in document.claims),
        originals=originals,
    )
    plan = calibrated(plan, catalog, _wanted(document, options))
    plan = _under(plan, options.connections) if options.connections else plan
    return narrowed(plan, options.only) if options.only else plan


def calibrated(plan: Plan, catalog: CatalogView, wanted: CalibrationDocument | None) -> Plan:
    """Return the plan with a calibration under the load of ``wanted``: the reference server, with Prony's own
    engine, in the same sandbox but without the subjects' limits.

    *Errors*: UsageError when the catalogue has no reference server.
    """
    if wanted is None:
        return plan
    app = catalog.app(CALIBRATOR_APP)
    entry, variant = catalog.split(CALIBRATOR)
    subject = Subject("calibration", entry, app, Interface.NONE, variant)
    load = Workload(
        loop=OpenLoop(wanted.rate),
        stop=DurationStop(wanted.duration),
        warmup_ns=wanted.warmup,
        timeout_ns=wanted.timeout,
        grace_ns=wanted.timeout,
    )
    sandbox = replace(plan.cells[0].sandbox, cpu_quota=None, memory_bytes=None, pids=None, sysctl=())
    number = 1 + max(cell.id for cell in plan.cells)
    engine = EngineChoice(pacing=plan.cells[0].engine.pacing)
    return replace(plan, calibration=Cell(number, subject, asking(load, app, None), engine, sandbox))


def _cells(
    document: StudyDocument, profile_name: str, catalog: CatalogView, options: PlanOptions
) -> Iterator[Cell]:
    profile = document.profiles[profile_name]
    measured = [part for part in document.subjects if part.is_in(profile_name, profile)]
    asked = [one for part in measured for one in _asked(part, document, catalog, options)]
    check_size(
        {
            plain.name: choices.by_key(plain.frontend.entry if plain.frontend else "")
            for plain, choices in asked
        }
    )
    found = _unique([setup for plain, choices in asked for setup in seated(plain, options.sandbox, choices)])
    parts = [in_profile(part, profile) for part in document.workloads if not is_skipped(part, profile)]
    # One for all loads, or two rates of one study could not be compared.
    shared = replace(options.engine, pacing=Pacing.usual(shares_cpus=True))
    # Each group of users has a thread: these would spin on one CPU.
    shares = options.sandbox.share_cpus or any(part.groups for part in parts)
    chosen = shared if shares else options.engine
    loads = [
        (setup, options.requests(part, load), engine)
        for setup in found
        for part in parts
        if part.is_for(setup.subject.name)
        for engine in engines_of(part, chosen)
        for load in workloads_of(part, setup.subject.app, options.request)
    ]
    for number, (setup, load, engine) in enumerate(loads):
        yield Cell(number, setup.subject, load, engine, setup.sandbox)


def _design(document: StudyDocument, profile: ProfileDocument) -> Design:
    design = document.design
    return Design(
        margin=design.margin,
        primary={str(name): value for name, value in design.primary.items()},
        trimmed_mean=design.trimmed_mean,
        machine_memory=design.machine_memory,
        pilot_ns=profile.pilot,
        editions={
            name: part.as_of
            for part in document.subjects
            if profile.of_the_time and part.as_of
            for name in document.names(part)
        },
    )


def _source(document: StudyDocument) -> str:
    """Return where the experiment was published, and what it did, as one sentence."""
    known = [_publication(one) for one in document.sources]
    return ": ".join(part for part in ("; ".join(known), document.source) if part)


def _publication(one: SourceDocument) -> str:
    stated = ", ".join(part for part in (one.title, one.author, one.date, one.address) if part)
    return f"{stated} ({one.about})" if one.about else stated


def _as_published(profile: ProfileDocument, blocks: int) -> Iterator[str]:
    """Yield that the original measured another number of times: fewer than five allow no verdict."""
    if profile.as_published:
        yield f"Everything is measured {blocks} times; as published: {profile.as_published}."


def _claim(claim: ClaimDocument, document: StudyDocument) -> Claim:
    stated = {name: getattr(claim, name) for name in type(claim).model_fields}
    loads = {
        name: {str(key): value for key, value in stated[name].items()} for name in ("load", "against_load")
    }
    agreed = {
        "needs": _needs(claim.needs),
        "among": claim.among or document.of_original,
        "tolerance": _tolerance(claim, document.design),
    }
    return Claim(**{**stated, **loads, **agreed})


def _needs(document: NeedsDocument) -> Needs:
    return Needs(
        server_cpus=document.server_cpus,
        generator_cpus=document.generator_cpus,
        connections=document.connections,
        blocks=document.blocks,
        duration_ns=document.duration,
        timeout_ns=document.timeout,
        requests=document.requests,
    )


def _tolerance(claim: ClaimDocument, design: DesignDocument) -> float:
    """Return the claim's own tolerance, else the margin where its kind has a use for one."""
    if claim.tolerance is not None:
        return claim.tolerance
    return design.margin if claim.kind in TOLERANT else 0.0


def _wanted(document: StudyDocument, options: PlanOptions) -> CalibrationDocument | None:
    if options.calibrate is None:
        return document.calibration
    return (document.calibration or CalibrationDocument()) if options.calibrate else None


def narrowed(plan: Plan, patterns: Sequence[str]) -> Plan:
    """Return the plan with the cells alone whose subject's, or generator's, name fits one of the globs.

    *Errors*: UsageError for a glob that fits none.
    """
    found = {cell.id for pattern in patterns for cell in _fitting(plan, pattern)}
    return replace(plan, cells=tuple(cell for cell in plan.cells if cell.id in found))


def _fitting(plan: Plan, pattern: str) -> tuple[Cell, ...]:
    cells = plan.only(pattern)
    if not cells:
        names = ", ".join(subject.name for subject in plan.subjects())
        raise UsageError(
            f"`--only {pattern}` matches no subject of `{plan.name}`", hint=f"its subjects: {names}"
        )
    return cells


def _under(plan: Plan, connections: Sequence[int]) -> Plan:
    """Return the plan with the closed loops alone that have so many connections.

    *Errors*: UsageError for a number that no load of the plan has.
    """
    loops = ((cell.id, cell.workload.loop) for cell in plan.cells)
    counts = {number: loop.connections for number, loop in loops if isinstance(loop, ClosedLoop)}
    known = sorted(set(counts.values()))
    unknown = [count for count in connections if count not in known]
    if unknown:
        levels = ", ".join(map(str, known))
        raise UsageError(
            f"`--connections {unknown[0]}`: no load of `{plan.name}` has so many in the profile "
            f"`{plan.profile}`",
            hint=f"its closed loops have {levels} connections" if known else "it has open loops only",
        )
    return replace(plan, cells=tuple(cell for cell in plan.cells if counts.get(cell.id) in connections))


def _asked(
    part: SubjectDocument, document: StudyDocument, catalog: CatalogView, options: PlanOptions
) -> Iterator[tuple[Subject, Choices]]:
    """Yield the subjects of a part without settings, each with what is asked of them: by the document, and
    instead of that by the command line.
    """
    typed = options.settings
    for server, app_name in part.pairs:
        app = catalog.app(app_name)
        alone, at, front = catalog.of_app(server, app_name).partition("@")
        entry, variant = catalog.split(alone)
        frontend = catalog.frontend(front) if at else None
        if frontend is None:
            _check_alone(alone, catalog)
        plain = Subject(
            name=f"{server}+{app.name}",
            server=entry,
            variant=variant,
            app=app,
            interface=_interface(part.interface, alone, app, catalog),
            frontend=frontend,
        )
        asked = document.choices(part, server)
        of_front = {**typed.get(frontend.entry, {}), **typed.get(front, {})} if frontend else {}
        of_front = {**options.entrance, **of_front} if frontend else {}
        of_server = {} if frontend else options.entrance
        yield (
            plain,
            replace(
                asked,
                server={**asked.server, **of_server, **typed.get(entry, {}), **typed.get(alone, {})},
                frontend={**asked.frontend, **of_front},
                sandbox={**_left(asked.sandbox, options.sandbox), **typed.get(OF_SANDBOX, {})},
                variables={**asked.variables, **typed.get(OF_APP, {})},
            ),
        )


def _check_alone(server: str, catalog: CatalogView) -> None:
    """Refuse a server that cannot be used without a frontend."""
    needed = catalog.behind(server)
    if needed is not None:
        raise UsageError(
            f"`{server}` cannot be used without a frontend",
            hint=f"name one, as in `{server}@{needed}`",
        )


def _left(wanted: Mapping[str, Choice], chosen: SandboxChoice) -> dict[str, Choice]:
    """Return the limits of a study that the command line does not set."""
    limits = {"cpus": chosen.cpu_quota, "memory": chosen.memory_bytes, "pids": chosen.pids}
    return {name: choice for name, choice in wanted.items() if limits.get(name) is None}


def _interface(wanted: Interface | None, server: str, app: App, catalog: CatalogView) -> Interface:
    speaks = catalog.interfaces(server)
    offers = [*app.targets, *([Interface.NONE] if app.name in catalog.serves(server) else [])]
    both = [interface for interface in speaks if interface in offers]
    if wanted in both:
        return wanted
    if wanted is None and both:
        return both[0]
    offered = ", ".join(sorted(app.targets))
    raise UsageError(
        f"`{server}` speaks {', '.join(speaks)}, but the app `{app.name}` offers {wanted or offered}",
        hint="`prony servers` lists the interfaces of each server",
    )


def _unique(found: Iterable[Seated]) -> Sequence[Seated]:
    seen: dict[str, Seated] = {}
    for setup in found:
        name = setup.subject.name
        if name in seen and seen[name] != setup:
            raise UsageError(f"two different subjects are named `{name}`", hint="put them into two studies")
        seen[name] = setup
    return tuple(seen.values())


# --- the cells of a plan again, under other generators ----------------------------------------------------


def with_generator(plan: Plan, choice: EngineChoice) -> Plan:
    """Return the plan with one more generator: under each load of each subject, once.

    A program whose command does not name the connections or the rate sends one load: of those of the plan the
    one that subjects are compared at, else the first.
    """
    loads: dict[object, Cell] = {}
    for cell in plan.cells:
        loads.setdefault((cell.subject.name, cell.workload), cell)
    cells = list(loads.values())
    if choice.command and not any(name in choice.command for name in ("{connections}", "{rate}")):
        primary = [cell for cell in cells if cell.is_under(plan.design.primary)] or cells
        cells = list({cell.subject.name: cell for cell in reversed(primary)}.values())[::-1]
    taken = [cell.id for cell in (*plan.cells, *((plan.calibration,) if plan.calibration else ()))]
    added = (
        replace(cell, id=number, engine=replace(choice, pacing=cell.engine.pacing))
        for number, cell in enumerate(cells, start=max(taken, default=-1) + 1)
    )
    return replace(plan, cells=(*plan.cells, *added))


_UNDER_ALL: Mapping[str, Collection[float]] = MappingProxyType({})


def cross_check_cells(
    plan: Plan, engines: Sequence[str], under: Mapping[str, Collection[float]] = _UNDER_ALL
) -> tuple[Cell, ...]:
    """Return each cell of the built-in engine again for each of ``engines``, with ids of its own.

    ``under``: only cells whose load has one of these values, by the keys of `Cell.load`.

    They belong to the plan's blocks, like its own cells: only trials of one block are compared.

    *Errors*: UsageError when an engine is named twice, or is the built-in one.
    """
    own = EngineChoice().name
    if own in engines or len(set(engines)) < len(engines):
        raise UsageError(
            f"`--cross-check {','.join(engines)}` checks nothing; "
            f"expected other generators than `{own}`, each once"
        )
    cells = [cell for cell in plan.cells if cell.engine.name == own and _is_under(cell, under)]
    taken = [cell.id for cell in (*plan.cells, *((plan.calibration,) if plan.calibration else ()))]
    pairs = [(cell, name) for name in engines for cell in cells]
    return tuple(
        replace(cell, id=number, engine=replace(cell.engine, name=name))
        for number, (cell, name) in enumerate(pairs, start=max(taken, default=-1) + 1)
    )


def _is_under(cell: Cell, under: Mapping[str, Collection[float]]) -> bool:
    return all(cell.load.get(name) in values for name, values in under.items())

"""A plan's text and a catalogue -> cells, blocks and their seeded order.

Pure: reads no file and starts nothing. A study in the catalogue, a user's own file and the options of an ad
hoc run all become a `StudyDocument`, and from there one path leads to the `Plan`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from random import Random
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, model_validator

from prony.errors import UsageError
from prony.model import (
    MAX_CONNECTIONS,
    MAX_RATE_PER_S,
    App,
    Arrivals,
    Cell,
    ClosedLoop,
    CountStop,
    DurationStop,
    EngineChoice,
    Frontend,
    Interface,
    Loop,
    OpenLoop,
    Plan,
    Request,
    SandboxChoice,
    Subject,
    Workload,
)
from prony.units import DAY_NS, parse_duration, parse_rate

__all__ = [
    "CatalogView",
    "Nuisances",
    "PlanOptions",
    "ProfileDocument",
    "StudyDocument",
    "SubjectDocument",
    "WorkloadDocument",
    "block_order",
    "make_plan",
    "nuisances",
    "with_arrivals",
]

# The padding variable of STATISTICS' designs (Mytkowicz et al. 2009): up to 4 KiB moves the stack by a page.
MAX_PADDING_BYTES = 4096


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str | int | float) else value


def _as_duration(value: object) -> object:
    return parse_duration(value) if isinstance(value, str) else value


def _as_rates(value: object) -> object:
    values = value if isinstance(value, list | tuple) else (value,)
    return tuple(parse_rate(item) if isinstance(item, str) else item for item in values)


Duration = Annotated[int, BeforeValidator(_as_duration), Field(gt=0, le=DAY_NS)]
"""A duration in a document: text with a unit (``"30s"``), at most a day; inside, nanoseconds."""
Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
Connections = Annotated[int, Field(gt=0, le=MAX_CONNECTIONS)]
Counts = Annotated[tuple[Connections, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
Rate = Annotated[float, Field(gt=0, le=MAX_RATE_PER_S, allow_inf_nan=False)]
Rates = Annotated[tuple[Rate, ...], BeforeValidator(_as_rates), Field(min_length=1)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SubjectDocument(_Document):
    """``[[subjects]]``: every server in the list around every app in the list.

    A server's name may end in a frontend: ``starman@nginx``.
    """

    server: Names
    app: Names
    interface: Interface | None = None
    settings: Mapping[str, int | str] = Field(default_factory=dict)


class WorkloadDocument(_Document):
    """``[[workloads]]``: one load, or several that differ in connections or rate."""

    loop: Literal["open", "closed"]
    rate: Rates | None = None
    connections: Counts | None = None
    arrivals: Arrivals = Arrivals.CONSTANT
    requests: PositiveInt | None = None
    keep_alive: bool = True

    @model_validator(mode="after")
    def _loop_has_its_fields(self) -> "WorkloadDocument":
        if self.loop == "open" and self.rate is None:
            raise ValueError("an open loop needs `rate`, in requests per second")
        if self.loop == "closed" and self.connections is None:
            raise ValueError("a closed loop needs `connections`")
        if self.loop == "closed" and self.rate is not None:
            raise ValueError("a closed loop has no `rate`: the server sets it")
        return self


class ProfileDocument(_Document):
    """``[profiles.NAME]``: how long and how often."""

    blocks: PositiveInt
    duration: Duration
    warmup: Annotated[int, BeforeValidator(_as_duration), Field(ge=0, le=DAY_NS)] = 0
    timeout: Duration = 10_000_000_000
    grace: Duration | None = None
    connections: Counts | None = None
    rate: Rates | None = None


class StudyDocument(_Document):
    """What a study's file says."""

    format: Literal[1] = 1
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    title: str
    question: str = ""
    source: str = ""
    subjects: tuple[SubjectDocument, ...] = Field(min_length=1)
    workloads: tuple[WorkloadDocument, ...] = Field(min_length=1)
    profiles: Mapping[str, ProfileDocument] = Field(min_length=1)

    def profile(self, name: str | None) -> tuple[str, ProfileDocument]:
        """Return the profile of this name; without one ``quick``, else the first."""
        chosen = name or ("quick" if "quick" in self.profiles else next(iter(self.profiles)))
        if chosen not in self.profiles:
            raise UsageError(
                f"study `{self.name}` has no profile `{chosen}`; it has {', '.join(self.profiles)}"
            )
        return chosen, self.profiles[chosen]


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

    def frontend(self, name: str) -> Frontend:
        """Return what stands in front of a server under this name; UsageError when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the command line adds to a document. ``settings``: overridden settings by server's name."""

    profile: str | None = None
    only: str | None = None
    blocks: int | None = None
    seed: int = 1
    engine: EngineChoice = EngineChoice()
    sandbox: SandboxChoice = SandboxChoice()
    request: Request | None = None
    settings: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Nuisances:
    """What is randomised in a trial that nobody means to test, so that it cannot favour a subject."""

    padding_bytes: int
    hash_seed: int
    arrival_seed: int

    def as_text(self) -> dict[str, str]:
        """Return the values as the archive keeps them."""
        return {name: str(value) for name, value in asdict(self).items()}

    def as_environment(self) -> dict[str, str]:
        """Return the variables that carry them into a subject: one moves its stack, one orders its hashes."""
        return {"PRONY_PADDING": "x" * self.padding_bytes, "PYTHONHASHSEED": str(self.hash_seed)}


def make_plan(document: StudyDocument, text: str, catalog: CatalogView, options: PlanOptions) -> Plan:
    """Return the resolved plan of ``document``: every subject under every load.

    *Errors*: UsageError for a name that the catalogue does not have, an app without the server's interface,
    or when nothing is left by ``only``.
    """
    profile_name, profile = document.profile(options.profile)
    subjects = [
        subject for part in document.subjects for subject in _subjects(part, catalog, options.settings)
    ]
    loads = [load for part in document.workloads for load in _workloads(part, profile)]
    pairs = product(_unique(subjects), loads)
    cells = tuple(
        Cell(number, subject, _for_app(load, subject.app, options.request), options.engine, options.sandbox)
        for number, (subject, load) in enumerate(pairs)
    )
    plan = Plan(
        name=document.name,
        title=document.title,
        text=text,
        profile=profile_name,
        cells=cells,
        blocks=options.blocks or profile.blocks,
        seed=options.seed,
        question=document.question,
    )
    return _narrowed(plan, options.only) if options.only else plan


def block_order(plan: Plan, block: int) -> tuple[Cell, ...]:
    """Return the plan's cells in the random order of ``block``: the same for the same seed.

    *Definition*: a randomised complete block visits every cell once. *Source*: Fisher, 1935, The Design of
    Experiments, chapter 4.
    """
    cells = list(plan.cells)
    Random(f"{plan.seed}:order:{block}").shuffle(cells)  # noqa: S311 - an experiment's order, not a secret
    return tuple(cells)


def nuisances(plan: Plan, block: int, cell: Cell, attempt: int = 0) -> Nuisances:
    """Return the nuisance values of one trial, from the plan's seed.

    Arrivals are the same for all subjects of a block, which are compared, and differ between blocks.
    *Source*: Mytkowicz et al., 2009, Producing Wrong Data Without Doing Anything Obviously Wrong!
    """
    random = Random(f"{plan.seed}:nuisance:{block}:{cell.id}:{attempt}")  # noqa: S311
    arrivals = Random(f"{plan.seed}:arrivals:{block}:{attempt}")  # noqa: S311
    return Nuisances(
        padding_bytes=random.randrange(MAX_PADDING_BYTES),
        hash_seed=random.randrange(2**32),
        arrival_seed=arrivals.randrange(2**32),
    )


def with_arrivals(workload: Workload, seed: int) -> Workload:
    """Return the workload with its arrivals drawn from ``seed``; a closed loop has none."""
    match workload.loop:
        case OpenLoop():
            return replace(workload, loop=replace(workload.loop, seed=seed))
        case ClosedLoop():
            return workload


def _narrowed(plan: Plan, pattern: str) -> Plan:
    cells = plan.only(pattern)
    if not cells:
        names = ", ".join(subject.name for subject in plan.subjects())
        raise UsageError(
            f"`--only {pattern}` fits no subject of `{plan.name}`", hint=f"its subjects are {names}"
        )
    return replace(plan, cells=cells)


def _subjects(
    part: SubjectDocument, catalog: CatalogView, overrides: Mapping[str, Mapping[str, int | str]]
) -> Iterable[Subject]:
    for name, app_name in product(part.server, part.app):
        app = catalog.app(app_name)
        server, at, front = name.partition("@")
        entry, variant = catalog.split(server)
        frontend = catalog.frontend(front) if at else None
        if frontend:
            chosen = {**overrides.get(frontend.entry, {}), **overrides.get(front, {})}
            frontend = replace(frontend, settings=chosen)
        yield Subject(
            name=f"{name}+{app.name}",
            server=entry,
            variant=variant,
            app=app,
            interface=_interface(part.interface, server, app, catalog),
            settings={**part.settings, **overrides.get(entry, {}), **overrides.get(server, {})},
            frontend=frontend,
        )


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
        hint="`prony servers` lists which server speaks what",
    )


def _unique(subjects: Sequence[Subject]) -> Sequence[Subject]:
    seen: dict[str, Subject] = {}
    for subject in subjects:
        if subject.name in seen and seen[subject.name] != subject:
            raise UsageError(
                f"two subjects are named `{subject.name}` and differ", hint="name them in two studies"
            )
        seen[subject.name] = subject
    return tuple(seen.values())


def _workloads(part: WorkloadDocument, profile: ProfileDocument) -> Iterable[Workload]:
    for loop in _loops(part, profile):
        yield Workload(
            loop=loop,
            stop=CountStop(part.requests) if part.requests else DurationStop(profile.duration),
            request=Request(keep_alive=part.keep_alive),
            warmup_ns=profile.warmup,
            timeout_ns=profile.timeout,
            grace_ns=profile.grace or profile.timeout,
        )


def _loops(part: WorkloadDocument, profile: ProfileDocument) -> Iterable[Loop]:
    if part.loop == "closed":
        return (ClosedLoop(count) for count in profile.connections or part.connections or ())
    # A profile's list is the grid of closed loops; an open loop's number is only a limit.
    most = (part.connections or (OpenLoop(1.0).connections,))[0]
    return (OpenLoop(rate, part.arrivals, connections=most) for rate in profile.rate or part.rate or ())


def _for_app(load: Workload, app: App, request: Request | None) -> Workload:
    """Return the load with what is asked of this app: the request given, else its contract's first."""
    checks = app.contract.checks
    asked = request or (checks[0].request if checks else Request())
    # A reply is checked against the contract only when it is one of the contract's own requests that is sent.
    check = next((one for one in checks if one.request == asked), None)
    asked = replace(asked, keep_alive=asked.keep_alive and load.request.keep_alive)
    if check is None:
        return replace(load, request=asked)
    return replace(load, request=asked, expect_status=check.status, expect_body=check.body)

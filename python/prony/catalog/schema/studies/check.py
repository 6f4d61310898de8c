"""The rules of a study's document beyond types: names exist, claims can be tested.

Pure. Finds all problems, each with its place; `toml_source` turns places into lines. A `Grid` has the cells
by names and loads, to which a document's other parts may refer; the catalogue is not asked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property

from prony.archive.codec import is_secret
from prony.catalog.schema.toml_source import Place, Problem
from prony.core.errors import FailureStage
from prony.core.metrics import METRICS
from prony.core.sysctl import why_not
from prony.figures.account import ClassKind, classes, ending_named
from prony.figures.trial_metrics import has_roles
from prony.model.plan import TOLERANT, Cell, ClaimKind
from prony.model.subject import YOURS, App, Interface, Subject, is_named
from prony.model.workload import EngineChoice, Mix, MixPath, RequestFile, RequestOrder, Workload
from prony.plan.document import (
    ClaimDocument,
    ProfileDocument,
    SandboxDocument,
    StudyDocument,
    WorkloadDocument,
)
from prony.plan.factors import AS_FOUND, Choice
from prony.plan.loads import engines_of, in_profile, is_skipped, workloads_of

_ANY_APP = App("", "", "", {})


@dataclass(frozen=True)
class Grid:
    """All cells of all profiles, by profile."""

    profiles: Mapping[str, tuple[Cell, ...]]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of all profiles."""
        return tuple(cell for cells in self.profiles.values() for cell in cells)

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        """The names of the subjects, each once."""
        return tuple(dict.fromkeys(cell.subject.name for cell in self.cells))

    @cached_property
    def engines(self) -> tuple[str, ...]:
        """The names of the generators, each once."""
        return tuple(dict.fromkeys(cell.engine.name for cell in self.cells))

    def fitting(self, subject: str, engine: str, load: Mapping[str, float]) -> tuple[Cell, ...]:
        """Return the cells whose subject and generator match the globs, under ``load``."""
        return tuple(self._fitting(subject, engine, load))

    def has(self, subject: str, engine: str, load: Mapping[str, float]) -> bool:
        """Return whether there are such cells."""
        return any(True for _ in self._fitting(subject, engine, load))

    def _fitting(self, subject: str, engine: str, load: Mapping[str, float]) -> Iterator[Cell]:
        subjects = {name for name in self.subjects if is_named(name, subject)}
        engines = {name for name in self.engines if fnmatchcase(name, engine)}
        return (
            cell
            for cell in self.cells
            if cell.subject.name in subjects and cell.engine.name in engines and cell.is_under(load)
        )


def grid_of(document: StudyDocument) -> Grid:
    """Return the cells of all profiles of ``document``."""
    return Grid({name: _grid_cells(document, name) for name in document.profiles})


def _grid_cells(document: StudyDocument, name: str) -> tuple[Cell, ...]:
    profile = document.profiles[name]
    # Subjects of the experiment's time are measured where a profile asks for them: they may be referred to.
    measured = (part for part in document.subjects if not part.profiles or name in part.profiles)
    names = dict.fromkeys(subject for part in measured for subject in document.names(part))
    parts = [in_profile(part, profile) for part in document.workloads if not is_skipped(part, profile)]
    found = (
        (subject, _named(part, load), engine)
        for subject in names
        for part in parts
        if part.is_for(subject)
        for engine in engines_of(part, EngineChoice())
        for load in workloads_of(part, _ANY_APP, None)
    )
    return tuple(
        Cell(number, Subject(subject, "", _ANY_APP, Interface.NONE), load, engine)
        for number, (subject, load, engine) in enumerate(found)
    )


def _named(part: WorkloadDocument, load: Workload) -> Workload:
    """Return the load with the name of the file that its requests are from, which is not read here."""
    if part.file is None:
        return load
    file = RequestFile(part.file, "", 0, part.order or RequestOrder.IN_ORDER)
    return replace(load, mix=Mix(part.mix or (MixPath(load.request.path),), file=file))


_CPU = ("cpu_percent", "generator_cpu_percent")
_BOUNDED = (ClaimKind.RATIO, ClaimKind.VALUE)
_MAY_BE_BOUNDED = (*_BOUNDED, ClaimKind.GROWS, ClaimKind.FAILS)
_AGAINST_ITSELF = (ClaimKind.RATIO, ClaimKind.STEADIER)


def check_study(document: StudyDocument, grid: Grid) -> list[Problem]:
    """Return all problems of ``document`` beyond types; ``grid`` has its cells."""
    found = [*_workloads(document, grid), *_profiles(document, grid)]
    # Without cells nothing else can be checked.
    return found if not all(grid.profiles.values()) else [*found, *_readings(document, grid)]


def _readings(document: StudyDocument, grid: Grid) -> list[Problem]:
    return [
        *_design(document, grid),
        *_repeated(("claims",), [claim.name for claim in document.claims]),
        *(
            problem
            for index, claim in enumerate(document.claims)
            for problem in _claim(("claims", index), claim, grid)
        ),
    ]


def _repeated(place: Place, names: Sequence[str | None]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            yield Problem((*place, index, "name"), name, "a name that is not taken yet")


def _workloads(document: StudyDocument, grid: Grid) -> Iterator[Problem]:
    yield from _repeated(("workloads",), [part.name for part in document.workloads])
    names = [name for part in document.subjects for name in document.names(part)]
    yield from _of_the_time(document)
    yield from _parts(document)
    yield from _apps(document)
    for index, part in enumerate(document.workloads):
        if not any(part.is_for(name) for name in names):
            expected = f"a pattern that matches one of {', '.join(names)}"
            yield Problem(("workloads", index, "subjects"), ", ".join(part.subjects), expected)
    for name, cells in grid.profiles.items():
        seen = [(cell.subject.name, cell.engine, cell.workload) for cell in cells]
        if len(set(map(repr, seen))) < len(seen):
            yield Problem(("workloads",), f"a load twice in the profile {name}", "loads that differ")


def _of_the_time(document: StudyDocument) -> Iterator[Problem]:
    known = [name for part in document.subjects if not part.as_of for name in document.names(part)]
    for index, part in enumerate(document.subjects):
        if part.as_of and part.as_of not in known:
            expected = f"the subject in whose place it is: one of {', '.join(known)}"
            yield Problem(("subjects", index, "as_of"), part.as_of, expected)
        names = document.names(part)
        if part.as_of and len(names) > 1:
            yield Problem(("subjects", index, "server"), ", ".join(names), "one subject with `as_of`")


def _parts(document: StudyDocument) -> Iterator[Problem]:
    """Yield profiles and settings of the kernel that the document does not have, and frontends that a server
    does not have.
    """
    for index, part in enumerate(document.subjects):
        for name in part.profiles:
            if name not in document.profiles:
                expected = f"profiles of this study: {', '.join(document.profiles)}"
                yield Problem(("subjects", index, "profiles"), name, expected)
        alone = [server for server in part.server if "@" not in server]
        if part.frontend and alone:
            expected = "servers behind a frontend, such as `gunicorn@nginx`"
            yield Problem(("subjects", index, "server"), ", ".join(alone), expected)
        yield from _sandbox(("subjects", index, "sandbox"), part.sandbox, document)
    yield from _sandbox(("sandbox",), document.sandbox, document)
    for name, settings in document.kernels.items():
        yield from _settings_of_kernel(("kernels", name), settings)


def _apps(document: StudyDocument) -> Iterator[Problem]:
    """Yield own apps that nobody measures, variables that an archive must not keep, and servers that do not
    go with an app.
    """
    pairs = [pair for part in document.subjects for pair in part.pairs]
    with_command = {app for server, app in pairs if server.partition("@")[0] == YOURS}
    for name, own in document.apps.items():
        if name not in {app for _, app in pairs}:
            yield Problem(("apps", name), name, "an app that one of the subjects has")
        for key in ("command", "current") if name not in with_command else ():
            if (typed := getattr(own, key)) is not None:
                yield Problem(("apps", name, key), typed, "a subject with the server `yours`, which it is")
        for variable in filter(is_secret, own.env):
            expected = f"none that may be secret, for an archive keeps this text: type --env {variable}=..."
            yield Problem(("apps", name, "env", variable), variable, expected)
    for index, part in enumerate(document.subjects):
        for server, app in part.pairs:
            wants_own, table = server.partition("@")[0] == YOURS, document.apps.get(app)
            if wants_own and table is None:
                yield Problem(("subjects", index, "app"), app, "an app of `[apps]`, whose command `yours` is")
            if table is not None and table.app is None and not wants_own:
                expected = f"`yours`: `{app}` is a command, which no other server runs"
                yield Problem(("subjects", index, "server"), server, expected)


def _settings_of_kernel(place: Place, settings: Mapping[str, Choice]) -> Iterator[Problem]:
    for name, choice in settings.items():
        for value in choice if isinstance(choice, tuple) else (choice,):
            expected = why_not(name, value)
            if expected:
                yield Problem((*place, name), f"{name} = {value}", expected)


def _sandbox(place: Place, sandbox: SandboxDocument, document: StudyDocument) -> Iterator[Problem]:
    yield from _settings_of_kernel((*place, "sysctl"), sandbox.sysctl)
    chosen = sandbox.kernel if isinstance(sandbox.kernel, tuple) else (sandbox.kernel,)
    known = (AS_FOUND, *document.kernels)
    for name in chosen:
        if name is not None and name not in known:
            expected = f"one of {', '.join(f'`{one}`' for one in known)}"
            yield Problem((*place, "kernel"), name, expected)


def _profiles(document: StudyDocument, grid: Grid) -> Iterator[Problem]:
    known = [part.name for part in document.workloads if part.name]
    for name, profile in document.profiles.items():
        for load in profile.workloads:
            if load not in known:
                expected = f"the name of one of the workloads: {', '.join(known) or 'none has one'}"
                yield Problem(("profiles", name, "workloads", load), load, expected)
        if not grid.profiles[name]:
            yield Problem(("profiles", name), "no load", "at least one that is not skipped")
        yield from _cross_check(name, profile, grid)


def _cross_check(name: str, profile: ProfileDocument, grid: Grid) -> Iterator[Problem]:
    wanted = profile.cross_check.under if profile.cross_check else {}
    for key, values in wanted.items():
        known = sorted({cell.load[key] for cell in grid.profiles[name] if key in cell.load})
        loads = ", ".join(f"{one:g}" for one in known) or "it has none"
        for value in values:
            if value not in known:
                place = ("profiles", name, "cross_check", key)
                yield Problem(place, f"{value:g}", f"a load of this profile: {loads}")


def _design(document: StudyDocument, grid: Grid) -> Iterator[Problem]:
    primary = {str(key): value for key, value in document.design.primary.items()}
    for name, cells in grid.profiles.items():
        if not any(cell.is_under(primary) for cell in cells):
            found = _load_words(primary)
            yield Problem(("design", "primary"), found, f"a load of every profile; `{name}` has no such")


def _load_words(load: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in load.items())


def _claim(place: Place, claim: ClaimDocument, grid: Grid) -> Iterator[Problem]:
    if claim.metric not in METRICS:
        expected = "one of METRICS (docs/reference/metrics.md)"
        yield Problem((*place, "metric"), claim.metric, expected)
    elif claim.role and not has_roles(claim.metric):
        yield Problem((*place, "role"), claim.role, f"no role: `{claim.metric}` is not measured by role")
    yield from _cells(place, claim, grid)
    yield from _among(place, claim, grid)
    yield from _bounds(place, claim)
    yield from _failure(place, claim)
    if claim.kind is ClaimKind.SINGLE_CORE and claim.metric not in _CPU:
        yield Problem((*place, "metric"), claim.metric, f"one of {', '.join(_CPU)}, for a single core")
    if claim.kind is ClaimKind.GROWS and not _has_several_loads(claim, grid):
        yield Problem(
            (*place, "load"), _load_words(_load(claim, "load")) or "all", "several loads, to grow with"
        )


def _cells(place: Place, claim: ClaimDocument, grid: Grid) -> Iterator[Problem]:
    """Yield globs that match nothing, and loads that the matching cells do not have."""
    sides = {
        ("subject", "engine", "load"): (claim.subject, claim.engine, _load(claim, "load")),
        ("against", "against_engine", "against_load"): (
            claim.against,
            claim.against_engine or claim.engine,
            _load(claim, "against_load"),
        ),
    }
    for fields, (subject, engine, load) in sides.items():
        if not grid.has(subject, "*", {}):
            yield Problem((*place, fields[0]), subject, _pattern("subjects", grid.subjects))
        elif not grid.has("*", engine, {}):
            yield Problem((*place, fields[1]), engine, _pattern("generators", grid.engines))
        elif not grid.has(subject, engine, load):
            yield Problem((*place, fields[2]), _load_words(load), "a load that some profile has for them")


def _among(place: Place, claim: ClaimDocument, grid: Grid) -> Iterator[Problem]:
    for index, glob in enumerate(claim.among):
        if not grid.has(glob, "*", {}):
            yield Problem((*place, "among", index), glob, _pattern("subjects", grid.subjects))


def _pattern(what: str, names: Iterable[str]) -> str:
    return f"a pattern that matches one of the {what}: {', '.join(names)}"


def _load(claim: ClaimDocument, field: str) -> dict[str, float]:
    return {str(key): value for key, value in getattr(claim, field).items()}


def _bounds(place: Place, claim: ClaimDocument) -> Iterator[Problem]:
    bounds = {name: value for name in ("low", "high") if (value := getattr(claim, name)) is not None}
    if claim.kind in _BOUNDED and not bounds:
        yield Problem((*place, "low"), None, "")
    if claim.kind not in _MAY_BE_BOUNDED:
        for name, value in bounds.items():
            yield Problem((*place, name), value, f"no such field: a claim `{claim.kind}` has no bounds")
    if claim.kind is ClaimKind.FAILS and "high" in bounds:
        expected = "no such field: a claim `fails` has a least share of the requests, `low`"
        yield Problem((*place, "high"), bounds["high"], expected)
    if claim.tolerance is not None and claim.kind not in TOLERANT:
        expected = f"no such field: the tolerance of a claim `{claim.kind}` is in its bounds"
        yield Problem((*place, "tolerance"), claim.tolerance, expected)
    if len(bounds) == 2 and bounds["low"] > bounds["high"]:
        yield Problem((*place, "high"), bounds["high"], f"at least `low`, {bounds['low']:g}")
    with_itself = claim.against == "*" and not claim.against_engine and not claim.against_load
    if claim.kind in _AGAINST_ITSELF and with_itself:
        yield Problem((*place, "against"), None, "")


def _failure(place: Place, claim: ClaimDocument) -> Iterator[Problem]:
    if claim.failure is None:
        return
    if claim.kind is not ClaimKind.FAILS:
        expected = f"no such field: a claim `{claim.kind}` names no failure"
        yield Problem((*place, "failure"), claim.failure, expected)
    elif not _is_failure(claim.failure):
        expected = "a class of the account, such as `timed_out` or `bad_status`, or a stage, such as `start`"
        yield Problem((*place, "failure"), claim.failure, expected)


def _is_failure(name: str) -> bool:
    known = [name for name, kind in classes().items() if kind is not ClassKind.OK]
    return name in tuple(FailureStage) or ending_named(name).name in known


def _has_several_loads(claim: ClaimDocument, grid: Grid) -> bool:
    cells = grid.fitting(claim.subject, claim.engine, _load(claim, "load"))
    return len({tuple(sorted(cell.load.items())) for cell in cells}) > 1

"""Prepares subjects: builds environments, puts apps where their user can read them, records each subject."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prony.catalog.discover.hints import Refusal, hint_for
from prony.catalog.install.environment import Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import materialise_app, prepare
from prony.catalog.launch import declared_facts
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import backends_of, resolved_settings
from prony.core.errors import SubjectError
from prony.model.facts import DeclaredFacts, FrontendFacts, SubjectFacts
from prony.model.plan import Plan
from prony.model.sandbox import Placement, SandboxFacts
from prony.model.subject import Subject
from prony.model.trial import SubjectRecord
from prony.study.assembly import SubjectNeeds, command_line, needs_of, why_unavailable
from prony.study.ledger import digest, identity
from prony.study.task import OwnPackages, Study, StudyListener


@dataclass(frozen=True, slots=True)
class Seats:
    """Where each subject runs, by its name: on which CPUs, and what its sandbox isolates."""

    placement: Callable[[str], Placement]
    facts: Callable[[str], SandboxFacts]


@dataclass(frozen=True, slots=True)
class Ready:
    """A subject that can be started: its environments, and the app where its user can read it."""

    subject: Subject
    needs: SubjectNeeds
    app_folder: Path


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of preparing: the subjects that can be started, by name, and the record of every subject."""

    ready: Mapping[str, Ready]
    records: tuple[SubjectRecord, ...]
    environments: Mapping[str, Environment | Unavailable]


def _needs(study: Study) -> Mapping[str, SubjectNeeds]:
    found: dict[str, SubjectNeeds] = {}
    for subject in _subjects(study.plan):
        own = study.packages.get(subject.app.name, OwnPackages())
        found[subject.name] = needs_of(
            study.catalog, subject, study.user, declared=own.declared, python=own.python
        )
    return found


def _subjects(plan: Plan) -> tuple[Subject, ...]:
    """Return the plan's subjects, including that of its calibration."""
    calibration = (plan.calibration.subject,) if plan.calibration else ()
    return (*plan.subjects(), *(one for one in calibration if one not in plan.subjects()))


def _requests(needs: Mapping[str, SubjectNeeds]) -> Sequence[EnvironmentRequest]:
    return tuple({one.key: one for need in needs.values() for one in need.all()}.values())


def prepare_subjects(study: Study, listener: StudyListener, seats: Seats) -> Prepared:
    """Build what every subject needs; return those that can be started, and a record of each.

    *Errors*: UsageError for an app that cannot be read.
    """
    needs = _needs(study)
    environments = prepare(_requests(needs), study.user, listener.environment, jobs=2)
    ready: dict[str, Ready] = {}
    records: list[SubjectRecord] = []
    for subject in _subjects(study.plan):
        need = needs[subject.name]
        lacking = why_unavailable(need, environments)
        if lacking:
            records.append(SubjectRecord(subject.name, unavailable=lacking.reason))
            continue
        found = Ready(subject, need, materialise_app(subject.app, study.user))
        ready[subject.name] = found
        records.append(_record(study, found, environments, seats))
    return Prepared(ready, tuple(records), environments)


def refuse_without_subjects(study: Study, prepared: Prepared) -> None:
    """Refuse a study without any available subject: it would measure only its calibration.

    *Errors*: SubjectError, with the reason of each.
    """
    names = {subject.name for subject in study.plan.subjects()}
    if names & prepared.ready.keys():
        return
    reasons = [f"  {one.name}: {one.unavailable}" for one in prepared.records if one.name in names]
    message = "\n".join(["no server is available", *reasons])
    hint = hint_for(Refusal(message))
    is_of_app = all(study.catalog.server(one.server).is_of_app for one in study.plan.subjects())
    if is_of_app or hint.name == "another Python":
        raise SubjectError(message, hint=hint.text)
    raise SubjectError(
        message,
        hint="`prony doctor` lists missing system packages; the app's requirements must be compatible with "
        "the server's",
    )


def _record(
    study: Study,
    ready: Ready,
    environments: Mapping[str, Environment | Unavailable],
    seats: Seats,
) -> SubjectRecord:
    subject, environment = ready.subject, environments[ready.needs.server.key]
    assert isinstance(environment, Environment), "only available subjects are recorded"
    entry = study.catalog.server(subject.server)
    cpus = len(seats.placement(subject.name).server_cpus)
    said = identity(study.catalog, subject, cpus, _built(ready.needs, environments))
    return SubjectRecord(
        name=subject.name,
        server_version=environment.version,
        interpreter=environment.interpreter,
        packages=environment.packages,
        lock_digest=environment.lock_digest,
        settings=resolved_settings(entry, subject, cpus),
        command_line=command_line(study.catalog, subject, cpus, ready.needs, environments),
        sandbox=seats.facts(subject.name),
        facts=replace(_facts(study.catalog, subject, ready.needs, environments, cpus), entry=said),
        entry_digest=digest(said),
    )


def _built(
    needs: SubjectNeeds, environments: Mapping[str, Environment | Unavailable]
) -> Iterator[Environment]:
    found = (environments[need.key] for need in needs.all())
    return (one for one in found if isinstance(one, Environment))


def _facts(
    catalog: Catalog,
    subject: Subject,
    needs: SubjectNeeds,
    environments: Mapping[str, Environment | Unavailable],
    cpus: int,
) -> SubjectFacts:
    """Return what the catalogue declares about the process that receives the load, and about the others."""
    server = catalog.server(subject.server)
    declared = declared_facts(server, subject, cpus)
    entries = [server, *(catalog.service(name) for name in needs.services)]
    services = {name: _version(environments[one.key]) for name, one in needs.services.items()}
    found = SubjectFacts(declared=declared, services=services)
    front = subject.frontend
    if front is not None and needs.frontend is not None:
        entry = catalog.frontends[front.entry]
        entries.append(entry)
        version, settings = _version(environments[needs.frontend.key]), resolved_settings(entry, front, cpus)
        found = replace(
            found,
            declared=declared_facts(entry, front, cpus),
            behind_it=_times(declared, backends_of(entry, front, cpus)),
            frontend=FrontendFacts(front.name, version, settings),
        )
    return replace(found, remarks={one.name: one.remark for one in entries if one.remark})


def _times(declared: DeclaredFacts, backends: int) -> DeclaredFacts:
    """Return what several back ends are together."""
    slots = None if declared.slots is None else backends * declared.slots
    return replace(declared, processes=backends * (declared.processes or 1), slots=slots)


def _version(environment: Environment | Unavailable) -> str | None:
    return environment.version if isinstance(environment, Environment) else None

"""Settings that were asked for, against the subjects that would take them, before anything is built."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from prony.catalog.schema.entry import FrontendEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import resolved_settings
from prony.core.errors import UsageError
from prony.model.plan import Plan
from prony.model.subject import Subject
from prony.plan.factors import OF_APP, OF_SANDBOX, Choice, Value, variables_of, without_levels


def check_settings(
    asked: Mapping[str, Mapping[str, Choice]], plan: Plan, known: Catalog, cpus: Mapping[str, int]
) -> Plan:
    """Return the plan when each of the settings, by server or frontend, is taken by a subject and fits;
    without subjects that are the same as another one here. ``cpus``: of the server, by subject.

    *Errors*: UsageError for one that nothing takes, or a value that does not fit.
    """
    for name in asked:
        if name not in (OF_SANDBOX, OF_APP):
            check_taken(name, asked[name], plan.subjects(), known)
    doubles = _doubles(plan, known, cpus)
    return replace(plan, cells=tuple(cell for cell in plan.cells if cell.subject.name not in doubles))


def _doubles(plan: Plan, known: Catalog, cpus: Mapping[str, int]) -> set[str]:
    """Return the subjects with levels whose settings are those of one before them: `{cpus}` may be 2."""
    seen: set[str] = set()
    doubles: set[str] = set()
    for subject in plan.subjects():
        settings = _resolved(subject, known, cpus[subject.name])
        variables = sorted(variables_of(subject.levels).items())
        same = repr((without_levels(subject), settings, variables, plan.sandbox_of(subject.name)))
        if same in seen and subject.levels:
            doubles.add(subject.name)
        seen.add(same)
    return doubles


def _resolved(subject: Subject, known: Catalog, cpus: int) -> tuple[Mapping[str, Value], ...]:
    """Return the settings of server and frontend.

    *Errors*: UsageError as `resolved_settings`.
    """
    own = resolved_settings(known.server(subject.server), subject, cpus, known.servers)
    if subject.frontend is None:
        return (own,)
    return own, resolved_settings(known.frontends[subject.frontend.entry], subject.frontend, cpus)


def check_taken(
    name: str, settings: Mapping[str, Choice], subjects: Sequence[Subject], known: Catalog
) -> None:
    """Return when settings that were typed for ``name``, a server or a frontend, are of one of the subjects.

    *Errors*: UsageError, naming what was typed and which subjects there are.
    """
    if any(name in (one.frontend.entry, one.frontend.name) for one in subjects if one.frontend):
        return
    if isinstance(known.entry(name), FrontendEntry):
        raise UsageError(f"`--set {name}...`: no subject stands behind `{name}`, as in gunicorn@{name}")
    entry, variant = known.find(name)
    if not any(one.server == entry.name and variant in ("", one.variant) for one in subjects):
        names = ", ".join(dict.fromkeys(without_levels(one).rpartition("+")[0] for one in subjects))
        typed = ", ".join(f"{name}.{key}={_typed(choice)}" for key, choice in settings.items())
        raise UsageError(f"`--set {typed}`: no subject runs `{name}`; the servers are {names}")


def _typed(choice: Choice) -> str:
    return ",".join(map(str, choice)) if isinstance(choice, tuple) else str(choice)

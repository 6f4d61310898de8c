"""What the catalogue declares of a subject, which diagnosis compares with what was observed. Pure."""

from collections.abc import Mapping

from prony.catalog.schema.entry import HostEntry
from prony.catalog.schema.expression import calculate
from prony.catalog.schema.settings import keep_alive_fact, resolved_settings
from prony.model.facts import DeclaredFacts
from prony.model.subject import Frontend, Subject


def declared_facts(entry: HostEntry, chosen: Subject | Frontend, cpus: int) -> DeclaredFacts:
    """Return what the entry declares about backlog, keep-alive and concurrency under the chosen settings.

    *Errors*: UsageError as `resolved_settings`.
    """
    settings = resolved_settings(entry, chosen, cpus)
    numbers = {"cpus": cpus, **{key: value for key, value in settings.items() if isinstance(value, int)}}
    keep_alive = keep_alive_fact(entry, settings)
    concurrency = entry.facts.concurrency
    return DeclaredFacts(
        backlog=_number(entry.facts.backlog.value, numbers),
        keep_alive=keep_alive.on,
        keep_alive_idle_s=_number(keep_alive.idle_s, numbers),
        processes=_number(concurrency.processes, numbers) or 1,
        slots=_number(concurrency.slots, numbers),
    )


def _number(value: int | str | None, numbers: Mapping[str, int]) -> int | None:
    return calculate(value, numbers) if isinstance(value, str) else value

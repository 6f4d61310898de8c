"""As many processes and threads for other servers as what runs today has, so that servers are compared and
not their settings. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prony.catalog.schema.command import settings_of_options
from prony.catalog.schema.entry import IntSetting
from prony.model.subject import YOURS, Interface

if TYPE_CHECKING:
    from prony.catalog.discover.current import Current
    from prony.catalog.schema.entry import ServerEntry
    from prony.catalog.schema.loader import Catalog
    from prony.plan.factors import Choice

_PROCESSES = ("workers", "processes", "max_workers")
# Granian's run an app of WSGI alone.
_THREADS: Mapping[str, Interface | None] = {"threads": None, "blocking_threads": Interface.WSGI}


@dataclass(frozen=True, slots=True)
class EqualShare:
    """``settings``: by server; ``remark``: what was made equal, and for which servers it cannot be; empty:
    nothing.
    """

    settings: Mapping[str, Mapping[str, "Choice"]] = field(default_factory=dict)
    remark: str = ""


def equal_share(
    current: "Current",
    known: "Catalog",
    servers: Sequence[str],
    interface: Interface,
    typed: Mapping[str, Mapping[str, "Choice"]],
) -> EqualShare:
    """Return the settings that give each of ``servers`` the processes and threads of ``current``, where it
    has them; what was ``typed``, or what a variant is made of, stays.
    """
    processes, threads = processes_and_threads(current, known)
    if all(known.split(server)[0] == YOURS for server in servers):
        return EqualShare()
    if processes is None:
        return EqualShare(
            remark="how many processes it starts is not known: the others keep their own numbers"
        )
    settings: dict[str, Mapping[str, Choice]] = {}
    lacking: list[str] = []
    for server in servers:
        name = server.partition("@")[0]
        entry, variant = known.find(name)
        if entry.name == YOURS:
            continue
        wanted, lack = _share(entry, processes, threads, interface)
        lacking += [f"{server} {lack}"] if lack else []
        kept = {*typed.get(entry.name, {}), *typed.get(name, {})}
        kept |= set(entry.variants[variant].settings) if variant else set()
        settings[server] = {key: value for key, value in wanted.items() if key not in kept}
    said = f"{processes} process{'es' if processes != 1 else ''}"
    said += f", {threads} thread{'s' if threads != 1 else ''} each" if threads else ""
    return EqualShare(settings, "; ".join([f"the others get {said}, as yours has", *lacking]))


def processes_and_threads(current: "Current", known: "Catalog") -> tuple[int | None, int | None]:
    """Return how many processes, and threads in each, a command starts; None: not known, or it has no pool of
    threads.
    """
    if not current.server:
        workers, threads = (current.options.get(f"--{key}", "") for key in ("workers", "threads"))
        processes = int(workers or 1) if (workers or "1").isdecimal() else None
        return processes, int(threads) if threads.isdecimal() else None
    base = known.servers[current.server]
    said = settings_of_options(base, current.options)
    counts: dict[str, int | None] = {}
    for key in (*_PROCESSES, *_THREADS):
        setting = base.settings.get(key)
        value = said.get(key, setting.default if isinstance(setting, IntSetting) else None)
        counts[key] = int(str(value)) if str(value).isdecimal() else None
    written = (current.options.get(f"--{key.replace('_', '-')}", "1") for key in counts)
    if not all(value.isdecimal() and int(value) for value in written):
        return None, None  # computed, or a mistake
    processes = next((counts[key] for key in _PROCESSES if counts[key]), 1)
    return processes, counts["threads"] or counts["blocking_threads"]


def _share(
    entry: "ServerEntry", processes: int, threads: int | None, interface: Interface
) -> tuple[dict[str, "Choice"], str]:
    """Return the settings of one server, and what it has not."""
    of_processes = next((key for key in _PROCESSES if key in entry.settings), None)
    of_threads = next(
        (key for key, only in _THREADS.items() if key in entry.settings and only in {None, interface}), None
    )
    if of_processes:
        wanted: dict[str, Choice] = {of_processes: processes}
        if threads and of_threads:
            wanted[of_threads] = threads
        return wanted, "has no setting for threads" if threads and threads > 1 and not of_threads else ""
    if of_threads and threads:
        count = processes * threads
        return {of_threads: count}, f"is one process, and gets {count} thread{'s' if count != 1 else ''}"
    return {}, "is one process" if processes > 1 else ""

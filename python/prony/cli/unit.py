"""``prony servers NAME --unit``: what starts a server for good, as it was measured or as it would be.

Of an archive only what was recorded is printed, and nothing of it is executed.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.catalog.launch.deployment import Deployment
    from prony.catalog.schema.entry import ServerEntry
    from prony.catalog.schema.loader import Catalog
    from prony.model.launch import StopRule
    from prony.model.plan import Cell
    from prony.model.records import SubjectRecord
    from prony.model.sandbox import SandboxChoice
    from prony.model.subject import App

_DEBIAN = "debian:stable-slim"


@dataclass(frozen=True, slots=True)
class AskedUnit:
    """A server's name, and what else was typed; ``archive``: where it was measured, null: nowhere."""

    server: str
    app: str
    settings: Mapping[str, Mapping[str, int | str]]
    archive: Path | None


def unit_of(known: "Catalog", asked: AskedUnit) -> str:
    """Return a unit of systemd, with the line of a container.

    *Errors*: UsageError for a name, a setting or an app that there is not; ArchiveError for what is no
    archive.
    """
    from prony.catalog.launch.deployment import unit_text

    if asked.archive is None:
        return unit_text(_of_catalogue(known, asked))
    if asked.settings:
        raise UsageError("`--set` and `--from` exclude each other: the archive has the settings")
    return unit_text(_of_archive(known, asked.server, asked.archive))


def _of_catalogue(known: "Catalog", asked: AskedUnit) -> "Deployment":
    from prony.assembly import command_line
    from prony.catalog.launch.deployment import Deployment
    from prony.catalog.schema.asked import check_taken
    from prony.host import available_cpus
    from prony.model.subject import Interface, Subject

    entry, variant = known.find(asked.server)
    app = _app(known, asked.app, entry)
    interface = next((one for one in entry.interfaces if one in app.targets), Interface.NONE)
    own = {**asked.settings.get(entry.name, {}), **asked.settings.get(asked.server, {})}
    subject = Subject(f"{asked.server}+{app.name}", entry.name, app, interface, variant, own)
    cpus = len(available_cpus())
    for name, settings in asked.settings.items():
        check_taken(name, settings, (subject,), known)
    image, install = _image(entry, None, "")
    return Deployment(
        name=subject.name,
        command=command_line(known, subject, cpus),
        stop=_stop(entry),
        image=image,
        install=install,
    )


def _app(known: "Catalog", typed: str, entry: "ServerEntry") -> "App":
    """Return a built-in app of this name, else the user's own in the working folder."""
    from prony.catalog.schema.apps import user_app

    if typed in known.apps:
        return known.apps[typed]
    return user_app(typed, Path.cwd(), entry.interfaces[0])


def _of_archive(known: "Catalog", name: str, file: Path) -> "Deployment":
    from prony.archive import open_archive
    from prony.catalog.launch.deployment import Deployment

    with open_archive(file) as archive:
        records, cells = archive.subjects(), archive.plan().cells
    cell = _cell(name, cells, file)
    record = records.get(cell.subject.name)
    if record is None or not record.command_line:
        raise UsageError(f"`{file}` has no command of `{cell.subject.name}`: it was not available")
    if not record.command_line.replace("\n", "").isprintable():
        raise UsageError(f"`{file}`: the command of `{cell.subject.name}` contains control characters")
    entry = known.servers.get(cell.subject.server)
    image, install = _image(entry, record, record.command_line)
    made = Deployment(
        name=cell.subject.name,
        command=record.command_line,
        stop=_stop(entry),
        image=image,
        install=install,
        limits=_limits(cell.sandbox),
    )
    user = record.sandbox.user or ""
    return replace(made, user=user) if re.fullmatch(r"[a-z_][a-z0-9_-]*", user) else made


def _cell(name: str, cells: "Sequence[Cell]", file: Path) -> "Cell":
    """Return the first cell of a subject: by its own name, or by its server's if no other has that.

    *Errors*: UsageError with the names that there are.
    """
    by_subject = {cell.subject.name: cell for cell in reversed(cells)}
    fitting = [one for one in by_subject if name in (one, one.partition("+")[0])]
    if len(fitting) != 1:
        raise UsageError(
            f"`{file}` has {'no' if not fitting else len(fitting)} subjects `{name}`; "
            f"expected one of {', '.join(sorted(by_subject))}"
        )
    return by_subject[fitting[0]]


def _stop(entry: "ServerEntry | None") -> "StopRule":
    from prony.model.launch import StopRule
    from prony.units import parse_duration

    return StopRule(entry.stop.signal, parse_duration(entry.stop.timeout)) if entry else StopRule()


def _limits(sandbox: "SandboxChoice") -> Mapping[str, str]:
    """Return the limits under which it was measured. *Source*: systemd.resource-control(5)."""
    asked = {
        "CPUQuota": None if sandbox.cpu_quota is None else f"{100 * sandbox.cpu_quota:g}%",
        "MemoryMax": sandbox.memory_bytes,
        "TasksMax": sandbox.pids,
    }
    return {name: str(value) for name, value in asked.items() if value is not None}


def _image(entry: "ServerEntry | None", record: "SubjectRecord | None", command: str) -> tuple[str, str]:
    """Return a container's image, and what installs the server in it."""
    if entry is not None and entry.install.kind == "python":
        version = re.search(r"CPython (\d+\.\d+)", (record.interpreter if record else None) or "")
        return f"python:{version[1] if version else 3}-slim", _pip(entry, record)
    if entry is not None:
        packages = shlex.join(entry.needs.debian)
        update = "apt-get update && apt-get install --yes --no-install-recommends"
        return _DEBIAN, f"{update} {packages}" if packages else ""
    major = re.match(r"\d+(?:\.\d+)?", (record.server_version if record else None) or "")
    if "/node " in command:
        return f"node:{major[0].partition('.')[0] if major else 'lts'}-slim", ""
    return (f"php:{major[0]}-cli" if major else "php:cli") if "/php " in command else _DEBIAN, ""


def _pip(entry: "ServerEntry", record: "SubjectRecord | None") -> str:
    pins = [f"{name}=={version}" for name, version in (record.packages if record else {}).items()]
    wanted = sorted(pins) or [*getattr(entry.install, "requirements", ())]
    alone = ["--no-deps"] if pins else []
    return shlex.join(["pip", "install", "--quiet", *alone, *wanted]) if wanted else ""

"""``prony servers``: the catalogue.

``prony servers NAME --unit``: what starts a server for good, as it was measured or as it would be.

Of an archive only what was recorded is printed, and nothing of it is executed.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli.flat import flattened, option
from prony.cli.options import run_as_option, server_to, share_cpus_option, trust_build_option
from prony.cli.talk import say, show, status_of, terminate_as_interrupt
from prony.core.errors import ExitCode, UsageError
from prony.machine.cpus import available_cpus
from prony.model.subject import App, Interface, Subject

if TYPE_CHECKING:
    from prony.catalog.launch.commands import Deployment
    from prony.catalog.schema.entry import ServerEntry
    from prony.catalog.schema.loader import Catalog
    from prony.model.launch import StopRule
    from prony.model.plan import Cell
    from prony.model.sandbox import SandboxChoice
    from prony.model.trial import SubjectRecord


_DEBIAN = "debian:stable-slim"


def _unit(known: "Catalog", names: Sequence[str], asked: "ServersOptions") -> str:
    """Return a unit of systemd, with the line of a container.

    *Errors*: UsageError for a name, a setting or an app that there is not; ArchiveError for what is no
    archive.
    """
    from prony.catalog.launch.commands import cautions, unit_text

    if not asked.unit:
        raise UsageError("`--from` only works with `--unit`", hint="prony servers NAME --unit --from FILE")
    if len(names) != 1:
        raise UsageError("`--unit`: expected the name of one server, or of one subject of an archive")
    if asked.archive is None:
        return unit_text(_of_catalogue(known, names[0], asked))
    if asked.settings:
        raise UsageError("`--set` and `--from` exclude each other: the archive has the settings")
    found = _of_archive(known, names[0], asked.archive)
    for caution in cautions(found):
        say(f"look before you install it: {caution}")
    return unit_text(found)


def _of_catalogue(known: "Catalog", server: str, asked: "ServersOptions") -> "Deployment":
    from prony.catalog.launch.commands import Deployment
    from prony.catalog.schema.loader import check_taken
    from prony.cli.variables import single_settings_of
    from prony.study.assembly import command_line

    entry, variant = known.find(server)
    typed = single_settings_of(asked.settings or ())
    app = _app(known, asked.app, entry)
    interface = next((one for one in entry.interfaces if one in app.targets), Interface.NONE)
    own = {**typed.get(entry.name, {}), **typed.get(server, {})}
    subject = Subject(f"{server}+{app.name}", entry.name, app, interface, variant, own)
    cpus = len(available_cpus())
    for name, settings in typed.items():
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
    from prony.catalog.launch.commands import Deployment

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
    from prony.core.units import parse_duration
    from prony.model.launch import StopRule

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


EPILOG = """\
Examples:
  prony servers                  every server: interface, version, what it needs here
  prony servers gunicorn         facts and settings of one server, with their sources
  prony servers tornado --file serve.py > serve.py    the script with which Prony starts it
  prony servers gunicorn+shop --unit --from shop.prony    a systemd unit that starts what was measured
  prony servers --json           the same as data
  prony servers --check          install, start, query, load and stop each of them here
  prony servers --check gunicorn uvicorn-quiet    only these; `gunicorn` includes its variants
  prony servers --check nginx starman@nginx       a frontend in front of its examples, and of one server
  prony servers --check gunicorn --app django-postgres    with another built-in app
  prony servers --update gunicorn    install the newest packages that its pins allow
  prony servers --new mine       write prony.d/mine.toml, a first version of your own entry
  prony servers --new mine --interface asgi    the same for another interface
"""

# The time of one check: start, contract, 1 s of load, stop. Only for the estimate before the first ends.
CHECK_S = 4.0


@dataclass(frozen=True, slots=True)
class ServersOptions:
    """What to do with the servers that are named."""

    catalog: list[Path] | None = option(None, "More catalogue entries: a file or a folder.")
    file: str | None = option(None, "Print this file of the server, as Prony uses it.")
    check: bool = option(
        False, "Install, start, query, load for 1 s and stop each; exit with 3 unless all pass.", "--check"
    )
    app: str = option("hello", "Check with this built-in app; with --file or --unit, your own too.")
    unit: bool = option(
        False, "Print a systemd unit that starts the server, and the line of a container.", "--unit"
    )
    archive: Path | None = option(
        None, "With --unit: as it was measured in this archive; NAME is the subject's.", "--from"
    )
    settings: list[str] | None = option(None, "With --file or --unit: a setting, server.key=value.", "--set")
    update: bool = option(
        False, "Look for newer versions of their locked packages, within their pins.", "--update"
    )
    new: str | None = option(None, "Write a first version of an entry, prony.d/NEW.toml.", metavar="NEW")
    interface: Interface = option(Interface.WSGI, "With --new: how the server calls the app.")
    run_as: str | None = run_as_option()
    share_cpus: bool = share_cpus_option()
    trust_build: bool = trust_build_option()
    as_json: bool = option(False, "Print JSON.", "--json")


@flattened
def servers(
    asked: ServersOptions,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Only these servers.", show_default=False, autocompletion=server_to
        ),
    ] = None,
) -> int:
    """List the servers that Prony knows, show details of some, or check them on this machine."""
    from prony.catalog.schema.loader import load_catalog

    known = load_catalog(tuple(asked.catalog or ()))
    if asked.new is not None:
        return _new(known, asked.new, asked.interface)
    if asked.interface is not Interface.WSGI:
        raise UsageError(
            "`--interface` only works with `--new`", hint="prony servers lists each server's own"
        )
    if asked.update:
        return _update(known, names or ())
    if asked.check:
        return _check(known, tuple(names or ()), asked)
    if asked.unit or asked.archive is not None:
        show(_unit(known, names or (), asked))
    elif asked.file is not None:
        show(_file_of(known, names or (), asked.file, asked), end="")
    else:
        _list(known, names or (), as_json=asked.as_json)
    return ExitCode.DONE


def _list(known: "Catalog", names: Sequence[str], *, as_json: bool) -> None:
    from prony.cli.documents.servers import server_document, server_json, servers_document
    from prony.report.formats.terminal import TerminalReporter
    from prony.report.text import pointer

    # Of a server, a frontend or a service; a server's name wins.
    entries = [known.entry(name).asked_for() for name in names] or list(known.entries())
    if as_json:
        show(json.dumps([server_json(entry) for entry in entries], indent=2))
        return
    servers = list(known.servers.values())
    documents = (
        [server_document(entry, pointer(k)) for k, entry in enumerate(entries)]
        if names
        else [servers_document(servers, [entry for entry in entries if entry not in servers])]
    )
    for document in documents:
        TerminalReporter().write(document)


def _update(known: "Catalog", names: Sequence[str]) -> int:
    from prony.catalog.install.resolve import relock

    entries = [known.find(name)[0] for name in names or known.servers if names or name not in known.own]
    for entry in entries:
        if entry.name in known.own:
            raise UsageError(
                f"`{entry.name}` did not come with Prony: its lock is kept in the cache",
                hint="prony clean --all empties the cache; Prony then resolves what it needs again",
            )
    for entry in entries:
        show(f"{entry.name}: {'changed' if relock(entry) else 'unchanged'}")
    return ExitCode.DONE


def _new(known: "Catalog", name: str, interface: Interface) -> int:
    from prony.catalog.schema.loader import write_skeleton

    file = write_skeleton(name, known, interface=interface)
    show(f"{file}   (edit it, then run: prony servers --check {name})")
    return ExitCode.DONE


def _check(known: "Catalog", names: tuple[str, ...], asked: ServersOptions) -> int:
    from prony.sandbox.choice import gain_namespaces

    gain_namespaces()
    from prony.cli.documents.servers import check_json, checks_document
    from prony.cli.progress import StudyProgress
    from prony.core.users import BuildRules, resolve_user
    from prony.report.formats.terminal import TerminalReporter
    from prony.study.catalog_check import ServerCheck, check_servers, names_to_check

    wanted = names_to_check(known, names)
    found: list[ServerCheck] = []
    status: int = ExitCode.DONE
    with terminate_as_interrupt(), StudyProgress(len(wanted), CHECK_S) as progress:
        try:
            user = resolve_user(asked.run_as, BuildRules(trusted=asked.trust_build))
            checks = check_servers(known, wanted, user, progress, app=asked.app, share_cpus=asked.share_cpus)
            # One by one: an interruption keeps earlier results.
            for item in checks:
                found.append(item)  # noqa: PERF402
        except KeyboardInterrupt as interrupt:
            status = status_of(interrupt)
    if asked.as_json:
        show(json.dumps([check_json(item) for item in found], indent=2))
    elif found:
        TerminalReporter().write(checks_document(found))
    passed = all(item.passed for item in found)
    return status or (ExitCode.DONE if passed else ExitCode.COULD_NOT_MEASURE)


def _file_of(known: "Catalog", names: Sequence[str], file: str, asked: ServersOptions) -> str:
    from prony.catalog.launch.commands import AskedFile, file_for_user
    from prony.cli.variables import single_settings_of

    if len(names) != 1:
        raise UsageError(
            f"`--file {file}`: a file belongs to a server; expected the name of one server before it"
        )
    wanted = AskedFile(names[0], file, single_settings_of(asked.settings or ()), asked.app)
    return file_for_user(known, wanted, len(available_cpus()))

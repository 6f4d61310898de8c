"""From a catalogue entry to the exact process to start, and to the command that a person would type.

Pure: nothing is read or started. Must not know how environments are built.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prony.catalog.apps import materialise_app
from prony.catalog.entry import Conditional, ServerEntry
from prony.catalog.expression import evaluate
from prony.catalog.settings import holds, keep_alive_fact, resolved_settings
from prony.catalog.template import check_text_value, fill
from prony.errors import UsageError
from prony.model import Address, Launch, Readiness, RoleRule, StopRule, Subject
from prony.units import parse_duration

__all__ = [
    "PLACEHOLDERS",
    "DeclaredFacts",
    "Installed",
    "command_for_user",
    "declared_facts",
    "make_launch",
    "materialise_app",
    "resolved_settings",
]

# What a command may ask for besides its entry's settings.
PLACEHOLDERS = frozenset(
    ["python", "bin", "host", "port", "app", "app_dir", "module", "attribute", "interface", "cpus", "run_dir"]
)


class Installed(Protocol):
    """What a launch needs of an environment: the interpreter and the folder of its programs."""

    @property
    def python(self) -> Path:
        """The interpreter."""
        ...

    @property
    def bin(self) -> Path:
        """The folder that holds the environment's programs."""
        ...


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """What the catalogue says of a subject under its settings; diagnosis compares it with what was observed.

    ``backlog`` null: the kernel's limit. ``slots``: how many requests may be in the app at once, null: no
    fixed number.
    """

    backlog: int | None
    keep_alive: bool
    keep_alive_idle_s: int | None
    processes: int
    slots: int | None


def make_launch(  # noqa: PLR0913, PLR0917 - the seven things that a command line depends on
    entry: ServerEntry,
    subject: Subject,
    environment: Installed,
    address: Address,
    app_dir: str,
    run_dir: str,
    cpus: int,
) -> Launch:
    """Return the process that serves ``subject`` at ``address``.

    ``app_dir`` is where the server finds the app, ``run_dir`` the trial's own folder and working directory,
    ``cpus`` the number of CPUs that the server may use.

    *Errors*: UsageError for a setting that does not exist or does not fit, or an interface that the app or
    server lacks.
    """
    settings = resolved_settings(entry, subject, cpus)
    places = {
        "python": str(environment.python),
        "bin": str(environment.bin),
        "app_dir": app_dir,
        "run_dir": run_dir,
    }
    places |= {"host": address.host, "port": str(address.port), "cpus": str(cpus)}
    values = {**_texts(settings), **places, **_target(entry, subject)}
    return Launch(
        command=_arguments(entry, settings, values),
        address=address,
        environment=_environment(entry, subject, values),
        files=dict(entry.files),
        readiness=Readiness(parse_duration(entry.readiness.timeout), entry.readiness.http),
        stop=StopRule(entry.stop.signal, parse_duration(entry.stop.timeout)),
        roles=tuple(RoleRule(role.role, role.where, role.pattern) for role in entry.roles),
    )


def command_for_user(  # noqa: PLR0913, PLR0917
    entry: ServerEntry, subject: Subject, app_dir: str, cpus: int, host: str = "127.0.0.1", port: int = 8000
) -> str:
    """Return what a person types to start this server around this app, in the manner of its own manual.

    A server that is started by a script of the catalogue gets that script written first. Values of the
    app's own variables are not shown, for they may be secrets: the command takes them from the shell's.

    *Errors*: UsageError as `make_launch`.
    """
    settings = resolved_settings(entry, subject, cpus)
    places = {
        "python": "python",
        "bin": "",
        "app_dir": app_dir,
        "run_dir": ".",
        "host": host,
        "port": str(port),
    }
    values = {**_texts(settings), **places, **_target(entry, subject), "cpus": str(cpus)}
    arguments = _arguments(entry, settings, values)
    program = arguments[0].removeprefix("/")  # `{bin}/gunicorn`, with an empty `{bin}`
    arguments = (program, *(argument.removeprefix("./") for argument in arguments[1:]))
    shown = _shown_environment(entry, subject, values)
    scripts = "".join(f"prony servers {entry.name} --file {name} > {name} && " for name in entry.files)
    return f"cd {shlex.quote(app_dir)} && {scripts}{shown}{shlex.join(arguments)}"


def declared_facts(entry: ServerEntry, subject: Subject, cpus: int) -> DeclaredFacts:
    """Return what the entry declares of backlog, keep-alive and concurrency under the subject's settings.

    *Errors*: UsageError as `resolved_settings`.
    """
    settings = resolved_settings(entry, subject, cpus)
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
    return evaluate(value, numbers) if isinstance(value, str) else value


def _texts(settings: Mapping[str, int | str]) -> dict[str, str]:
    return {
        key: ("true" if value else "false") if isinstance(value, bool) else str(value)
        for key, value in settings.items()
    }


def _target(entry: ServerEntry, subject: Subject) -> dict[str, str]:
    if subject.interface not in entry.interfaces or subject.interface not in subject.app.targets:
        spoken = ", ".join(entry.interfaces)
        offered = ", ".join(subject.app.targets)
        raise UsageError(
            f"`{subject.name}` over {subject.interface}: the server speaks {spoken}, the app offers {offered}"
        )
    target = subject.app.targets[subject.interface]
    expected = check_text_value(target)
    if expected:
        raise UsageError(f"the app's target is {target!r}; expected {expected}")
    module, _, attribute = target.partition(":")
    return {"app": target, "module": module, "attribute": attribute, "interface": str(subject.interface)}


def _arguments(
    entry: ServerEntry, settings: Mapping[str, int | str], values: Mapping[str, str]
) -> tuple[str, ...]:
    chosen: list[str] = []
    for argument in entry.command:
        match argument:
            case str():
                chosen.append(argument)
            case Conditional():
                chosen.extend(argument.then if holds(argument, settings) else argument.otherwise)
    return tuple(fill(text, values) for text in chosen)


def _environment(entry: ServerEntry, subject: Subject, values: Mapping[str, str]) -> dict[str, str]:
    # The app's folder may be read-only, and the user that servers run as has no home of its own.
    common = {"PYTHONPATH": "{app_dir}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "{run_dir}"}
    own = {} if entry.install.kind != "python" else common
    filled = {name: fill(text, values) for name, text in {**own, **entry.environment}.items()}
    return {**filled, **subject.app.environment}


def _shown_environment(entry: ServerEntry, subject: Subject, values: Mapping[str, str]) -> str:
    named = {name: fill(text, values) for name, text in entry.environment.items()}
    # A script's own folder is what Python searches first: the app's has to be named.
    path = {"PYTHONPATH": "."} if entry.files or "{bin}" in str(entry.command[0]) else {}
    assignments = "".join(f"{name}={shlex.quote(text)} " for name, text in {**path, **named}.items())
    return assignments + "".join(f'{name}="${name}" ' for name in subject.app.environment)

"""Any program that listens on a given port, as a server of the catalogue: ``prony run --command``, and a
program that was found in an app's folder.

>>> command_entry("mine", ["/srv/mine", "--port", "{port}"]).command
('/srv/mine', '--port', '{port}')
"""

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from re import fullmatch
from typing import Any

from pydantic import ValidationError

from prony.catalog.discover.current import COUNTS, Current
from prony.catalog.discover.sources import Program
from prony.catalog.schema.apps import folder_digest
from prony.catalog.schema.entry import (
    BacklogFact,
    BoolSetting,
    Build,
    ConcurrencyFact,
    Conditional,
    Facts,
    KeepAliveFact,
    PythonInstall,
    Role,
    ServerEntry,
    SystemInstall,
    SystemNeeds,
)
from prony.catalog.schema.expression import calculate
from prony.catalog.schema.rules import check_entry
from prony.catalog.schema.settings import TLS, SettingsError, keep_alive_fact, resolve
from prony.core.errors import UsageError
from prony.model.exchange import Contract
from prony.model.subject import YOURS, App, Interface

_NOT_DECLARED = "not declared: a command of the user"


def named_commands(texts: Sequence[str], folder: Path) -> tuple[ServerEntry, ...]:
    """Return an entry for each of ``texts``, such as ``node server.js {port}`` or ``old=./server {port}``.

    *Errors*: UsageError for a text that is not a command, or a name that is used twice.
    """
    entries = [command_entry(*parse_command(text, folder)) for text in texts]
    names = [entry.name for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise UsageError(
            f"two commands are named `{twice}`",
            hint=(f"give one of them another name: --command '{twice}-2=...'"),
        )
    return tuple(entries)


def parse_command(text: str, folder: Path) -> tuple[str, list[str]]:
    """Return name and words of a command; without a name it is named after its program.

    A program with a ``/`` in its name is relative to ``folder``, any other is searched on the PATH. No shell
    interprets the words.

    *Errors*: UsageError.
    """
    match = fullmatch(r"([a-z0-9]+(?:-[a-z0-9]+)*)=(.+)", text.strip())
    given, rest = (match.group(1), match.group(2)) if match else ("", text)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"`--command {text}`: {error}") from None
    if not words:
        raise UsageError("`--command`: expected a program and its arguments, such as 'node server.js {port}'")
    program = folder / words[0] if "/" in words[0] else Path(shutil.which(words[0]) or "")
    if not os.access(program, os.X_OK) or not program.is_file():
        raise UsageError(f"`--command {text}`: cannot find a program `{words[0]}` to run")
    name = given or "-".join(
        part for part in program.stem.lower().replace("_", "-").split("-") if part.isalnum()
    )
    return name or "command", [str(program.absolute()), *words[1:]]


def command_entry(name: str, words: Sequence[str]) -> ServerEntry:
    """Return the entry of a program that serves HTTP itself at ``{host}`` and ``{port}``.

    These are placeholders in its words, and the environment variables HOST and PORT.

    *Errors*: UsageError for words that an entry may not have.
    """
    return _checked(f"--command {name}=...", lambda: _entry(name, words))


def may_have_own_port(entry: ServerEntry) -> bool:
    """Return whether nobody knows that a server listens on the port that it is given: a user's program."""
    return entry.facts.backlog.source == _NOT_DECLARED


def program_entry(program: Program, folder: Path, environment: Mapping[str, str]) -> ServerEntry:
    """Return the entry of a program that was found in an app's ``folder``, and is built from its files; of
    ``environment``, what it is started with, only the number of PHP's processes is read.

    *Errors*: UsageError for words that an entry may not have.
    """
    build = Build(run=program.build, product=program.product) if program.build else None
    version = _VERSIONS.keys() & program.tools.keys()
    install = SystemInstall(
        kind="system",
        programs={name: (*_typed(paths), *paths) for name, paths in program.tools.items()},
        version=_VERSIONS[min(version)] if version else None,
        build=build,
    )
    return _checked(
        f"--app: {program.source}",
        lambda: _entry(
            program.name,
            program.command,
            language=program.language,
            install=install,
            needs=SystemNeeds(debian=program.debian),
            environment=program.environment,
            folder_is="build" if program.is_carried else "app_dir",
            **_concurrency(program, environment),
        ),
    ).of_app(folder)


def _concurrency(program: Program, environment: Mapping[str, str]) -> dict[str, ConcurrencyFact]:
    """Return how many requests a program works on at once, where that is known: PHP's own server."""
    if program.name != "php" or "-S" not in program.command:
        return {}
    workers = {**program.environment, **environment}.get(_PHP_WORKERS, "1")
    count = max(int(workers), 1) if workers.isdecimal() else 1
    text = f"one request at a time in each process: {_PHP_WORKERS} says how many, one without it"
    return {"concurrency": ConcurrencyFact(processes=count, slots=count, text=text, source=_PHP_MANUAL)}


def _typed(paths: Sequence[str]) -> Iterator[str]:
    """Yield the program that a shell of this user would start, such as a newer Go than the system's."""
    found = shutil.which(paths[0])
    if found is not None and found.startswith("/"):
        yield found


_PHP_WORKERS = "PHP_CLI_SERVER_WORKERS"
_PHP_MANUAL = "PHP manual, Built-in web server"
_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "go": ("{go}", "version"),
    "node": ("{node}", "--version"),
    "php": ("{php}", "--version"),
}


def _entry(name: str, words: Sequence[str], **more: Any) -> ServerEntry:
    """Return an entry of which nothing is known but its command, with what ``more`` of its fields say."""
    usual = {
        "language": "other",
        "install": SystemInstall(kind="system"),
        "folder_is": "app_dir",
        "environment": {},
        "interfaces": (Interface.NONE,),
        "concurrency": ConcurrencyFact(text="not known", source=_NOT_DECLARED),
    }
    fields = {**usual, **more}
    return ServerEntry(
        name=name,
        title=shlex.join(words)[:1000],
        command=tuple(words),
        facts=Facts(
            backlog=BacklogFact(source=_NOT_DECLARED),
            keep_alive=(KeepAliveFact(on=True, source=_NOT_DECLARED),),
            concurrency=fields.pop("concurrency"),
        ),
        roles=(Role(role="server", where="main"), Role(role="worker", where="child")),
        **{**fields, "environment": {"HOST": "{host}", "PORT": "{port}", **fields["environment"]}},
    )


# --- the command of today ---------------------------------------------------------------------------------


def current_entry(current: Current, known: Mapping[str, ServerEntry], interface: Interface) -> ServerEntry:
    """Return the entry of the command by which an app is served today, named `YOURS`: the words as they were
    written. Of the catalogue it has how its server is installed and stopped, and the roles of its processes.

    *Errors*: UsageError for words that an entry may not have.
    """
    typed = f"{YOURS}: {current.source}"
    if not current.server:
        words = tuple(current.words)
        fields = {
            "language": "python",
            "install": PythonInstall(kind="python", requirements=()),
            "interfaces": (interface,),
            "templates": dict(current.files),
            "environment": dict(current.address),
        }
        return _checked(typed, lambda: _entry(YOURS, words, **fields))
    base = known[current.server]
    tls = [part for part in base.command if isinstance(part, Conditional) and part.setting == TLS]
    return _checked(
        typed,
        lambda: ServerEntry.model_validate(
            {
                **{name: getattr(base, name) for name in _OF_BASE},
                "name": YOURS,
                "title": f"what runs today, {current.source}",
                "interfaces": (interface,),
                **_started_by(current.program, base),
                "command": (
                    f"{{{current.program}}}" if current.program else base.command[0],
                    *current.bind,
                    *tls,
                    *current.words,
                ),
                "facts": _literal_facts(base, current.options),
            }
        ),
    )


def _started_by(program: str, base: ServerEntry) -> dict[str, Any]:
    """Return how a server is installed that another program starts."""
    if not program:
        return {}
    programs = {**base.install.programs, program: (program,)}
    return {"install": base.install.model_copy(update={"programs": programs})}


# What is a server's own, whatever its options are.
_OF_BASE = (
    "language",
    "upstream",
    "licence",
    "needs",
    "install",
    "environment",
    "roles",
    "readiness",
    "stop",
    "tls",
)


def settings_of_options(base: ServerEntry, options: Mapping[str, str]) -> dict[str, int | str]:
    """Return the settings of ``base`` that a command's options stand for, as its own command has them.

    Options whose values are none of a setting's are left out: a number that is computed elsewhere.
    """
    found: dict[str, int | str] = {key: value for key, value in options.items() if key in base.settings}
    for option, key in _valued(base.command):
        if option in options:
            found[key] = options[option]
    for part in base.command:
        if isinstance(part, Conditional) and isinstance(base.settings.get(part.setting), BoolSetting):
            on, off = part.then[:1], part.otherwise[:1]
            found[part.setting] = on[0] in options if on else not (off and off[0] in options)
    return {key: value for key, value in found.items() if _fits(base, key, value)}


def entry_of_today(base: ServerEntry, current: Current) -> ServerEntry:
    """Return the entry of the server of today with the other options of its command, so that a candidate
    differs from it in numbers alone: of those that are settings the values are usual, the others stand first.

    *Errors*: UsageError for words that an entry may not have.
    """
    said = {
        key: value
        for key, value in settings_of_options(base, current.options).items()
        if key not in _counted(base)
    }
    values, known = resolve(base, said, 1), _options_of(base.command)
    more = (words for name, words in current.kept if name not in known | COUNTS and not _reloads(name))
    changed = {
        "settings": {
            **base.settings,
            **{key: base.settings[key].model_copy(update={"default": values[key]}) for key in said},
        },
        "command": (base.command[0], *(word for words in more for word in words), *base.command[1:]),
    }
    return _checked(f"{YOURS}: {current.source}", lambda: base.model_copy(update=changed))


def options_not_set(base: ServerEntry, current: Current) -> Iterator[str]:
    """Yield the options that `entry_of_today` cannot keep, as they are written: values that no setting takes,
    and what starts a server again whenever a file changes.
    """
    said = settings_of_options(base, current.options)
    keys = {option: key for option, key in _valued(base.command) if key in base.settings}
    for name, words in current.kept:
        if _reloads(name) or (name in keys and keys[name] not in said):
            yield f"`{' '.join(words)}`"


def _reloads(option: str) -> bool:
    return option.startswith("--reload")


def _counted(base: ServerEntry) -> set[str]:
    """Return the settings that are numbers of processes or threads."""
    return {key for option, key in _valued(base.command) if option in COUNTS}


def _options_of(command: Sequence[str | Conditional]) -> frozenset[str]:
    """Return the options that a command has, or may have."""
    words = (
        word
        for part in command
        for word in ((part,) if isinstance(part, str) else (*part.then[:1], *part.otherwise[:1]))
    )
    return frozenset(word.partition("=")[0] for word in words if word.startswith("--"))


def _valued(command: Sequence[str | Conditional]) -> Iterator[tuple[str, str]]:
    """Yield each option with the setting that is its value: `--workers {workers}`, `--threads={threads}`."""
    words: list[str] = []
    for part in command:
        words += [part] if isinstance(part, str) else [*part.then, "", *part.otherwise]
    for option, value in pairwise(words):
        # Of threads Puma takes the least and the most.
        if (match := fullmatch(r"\{(\w+)\}(?::\{\1\})?", value)) and option.startswith("--"):
            yield option, match[1]
    for word in words:
        if match := fullmatch(r"(--[\w-]+)=\{(\w+)\}", word):
            yield match[1], match[2]


def _fits(base: ServerEntry, key: str, value: int | str) -> bool:
    try:
        resolve(base, {key: value}, 1)
    except SettingsError:
        return False
    return True


def _literal_facts(base: ServerEntry, options: Mapping[str, str]) -> Facts:
    """Return what is declared of ``base`` under a command's options, as plain values."""
    settings = resolve(base, settings_of_options(base, options), 1)
    numbers = {key: value for key, value in settings.items() if isinstance(value, int)}
    kept = keep_alive_fact(base, settings)
    facts = base.facts

    def literal(value: int | str | None) -> int | None:
        return calculate(value, numbers) if isinstance(value, str) else value

    return Facts(
        backlog=BacklogFact(value=literal(facts.backlog.value), source=facts.backlog.source),
        keep_alive=(KeepAliveFact(on=kept.on, idle_s=literal(kept.idle_s), source=kept.source),),
        concurrency=ConcurrencyFact(
            processes=literal(facts.concurrency.processes) or 1,
            slots=literal(facts.concurrency.slots),
            text=facts.concurrency.text,
            source=facts.concurrency.source,
        ),
        caveats=facts.caveats,
    )


def _checked(typed: str, make: Callable[[], ServerEntry]) -> ServerEntry:
    """Return an entry that was made of what a user wrote.

    *Errors*: UsageError for words that an entry may not have.
    """
    try:
        entry = make()
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"`{typed}`: {first['msg']}: found `{first['input']}`") from None
    wrong = [problem for problem in check_entry(entry, entry.name) if problem.place[:1] == ("command",)]
    if wrong:
        raise UsageError(f"`{typed}`: found `{wrong[0].found}`; expected {wrong[0].expected}")
    return entry


def command_app(folder: Path, contract: Contract, environment: dict[str, str], name: str = "app") -> App:
    """Return the app of a command, or of a program: any reply, checked against ``contract``."""
    return App(
        name=name,
        title="what the command serves",
        folder=str(folder),
        targets={Interface.NONE: ""},
        contract=contract,
        environment=environment,
        digest=folder_digest(folder),
    )

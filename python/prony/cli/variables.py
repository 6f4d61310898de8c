"""Variables on the command line, without the secrets that an archive must not keep.

The option ``--set``: settings of servers, the app and the sandbox.

>>> single_settings_of(["gunicorn.workers=4"])
{'gunicorn': {'workers': 4}}
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from prony.cli.options import given_content
from prony.core.errors import UsageError
from prony.plan.factors import OF_APP, OF_SANDBOX, Choice, Value


def variables(pairs: Sequence[str], file: Path | None) -> dict[str, str]:
    """Return the app's variables: those of ``--env-file``, then those of ``--env``, which win.

    *Errors*: UsageError for an invalid variable, or one that is not set here.
    """
    found: dict[str, str] = {}
    for where, text in _lines(file):
        name, value = _variable(where, text.removeprefix("export ").lstrip())
        found[name] = _unquoted(value)
    for text in pairs:
        name, value = _variable(f"`--env {text.partition('=')[0]}`", text)
        found[name] = value
    return found


def check_variables(asked: Mapping[str, Choice]) -> None:
    """Refuse variables of ``--set env.NAME=VALUE,VALUE`` that are none, or that have one value: these have an
    option of their own, and their values are not kept.

    *Errors*: UsageError.
    """
    for name, choice in asked.items():
        values = choice if isinstance(choice, tuple) else (choice,)
        typed = f"--set env.{name}={','.join(map(str, values))}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"`{typed}`: `{name}` is no variable's name")
        if len(values) == 1:
            raise UsageError(
                f"`{typed}`: one value has an option of its own; expected `--env {name}={values[0]}`"
            )


def _variable(where: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    name = name.strip()
    if not name:
        raise UsageError(f"{where}: the name before `=` is missing; expected `NAME=value`")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise UsageError(f"{where}: expected a variable's name, or `NAME=value`")
    if not equals and name not in os.environ:
        raise UsageError(f"{where}: no such variable is set here; expected `{name}=value`")
    return name, value if equals else os.environ[name]


def _unquoted(value: str) -> str:
    """Return a value of a file as a shell reads it: without the quotes around it."""
    value = value.strip()
    is_quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def _lines(file: Path | None) -> list[tuple[str, str]]:
    """Return the lines with content, each with its place."""
    if file is None:
        return []
    try:
        lines = given_content(f"--env-file {file}", file).decode().splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"`--env-file {file}`: is not UTF-8 text") from None
    numbered = ((f"{file}:{number}", line.strip()) for number, line in enumerate(lines, 1))
    return [(where, line) for where, line in numbered if line and not line.startswith("#")]


def typed_line() -> str:
    """Return the typed command line without secrets: an archive keeps it, in UTF-8."""
    typed = shlex.join(["prony", *_without_values(sys.argv[1:])])
    return typed.encode("utf-8", "backslashreplace").decode()


def whole_command(out: Path) -> str:
    """Return the typed command line without secrets, with the archive that it writes."""
    typed = typed_line()
    is_named = any(word == "--out" or word.startswith("--out=") for word in sys.argv)
    return typed if is_named else f"{typed} {shlex.join(['--out', str(out)])}"


def again_command(*more: str) -> str:
    """Return the typed command line without secrets, for a new archive, and without the options ``more``."""
    words = shlex.split(typed_line())
    for name in ("--out", *more):
        if name in words:
            place = words.index(name)
            del words[place : place + 2]
        words = [word for word in words if not word.startswith(f"{name}=")]
    return shlex.join(words)


def refuse_masked(pairs: Sequence[str], headers: Sequence[str]) -> None:
    """Refuse a printed command that was typed as it stands: it has `...` in the place of secrets.

    *Errors*: UsageError naming the option.
    """
    for option, texts, mask in (("--env", pairs, _masked_variable), ("-H", headers, _masked_header)):
        for text in texts:
            if text.endswith("...") and text == mask(text):
                raise UsageError(
                    f"`{option} '{text}'`: `...` stands for the value, which Prony neither prints nor keeps",
                    hint="type the value in its place",
                )


def _without_values(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the values of ``--env`` and of headers that may be secret.

    >>> _without_values(["run", "--env", "TOKEN=x", "--env=A=b", "-c", "10"])
    ['run', '--env', 'TOKEN=...', '--env=A=...', '-c', '10']
    >>> _without_values(["-H", "Authorization: Bearer x", "--header=X-Api-Key: y", "-HAccept: z"])
    ['-H', 'Authorization: ...', '--header=X-Api-Key: ...', '-HAccept: z']
    """
    shown: list[str] = []
    for argument in arguments:
        option = shown[-1] if shown and shown[-1] in ("--env", "-H", "--header") else ""
        prefix = (
            ""
            if option
            else next((mark for mark in _ATTACHED if argument.startswith(mark) and argument != mark), None)
        )
        if prefix is None:
            shown.append(argument)
        else:
            is_variable = (option or prefix).startswith("--env")
            mask = _masked_variable if is_variable else _masked_header
            shown.append(prefix + mask(argument.removeprefix(prefix)))
    return shown


# The forms of an option with an attached value.
_ATTACHED = ("--env=", "--header=", "-H")


def _masked_variable(text: str) -> str:
    name, equals, _ = text.partition("=")
    return f"{name}=..." if equals else text


def _masked_header(text: str) -> str:
    from prony.archive.codec import is_secret

    name, colon, _ = text.partition(":")
    return f"{name}: ..." if colon and is_secret(name.strip()) else text


# --- settings: --set --------------------------------------------------------------------------------------


def settings_of(
    texts: Sequence[str], is_text: Callable[[str, str], bool] = lambda server, key: False
) -> dict[str, dict[str, Choice]]:
    """Return the settings of ``--set server.key=value``, by server; several values, as in
    ``--set server.key=2,4,8``, are a factor. ``is_text``: whether a setting is a free text, which may have
    commas.

    *Errors*: UsageError for a text of another form, or a value or a setting that is typed twice.
    """
    found: dict[str, dict[str, Choice]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        server, key = _target(target)
        if not (equals and server and key):
            raise UsageError(f"`--set {text}`: expected `server.key=value`, such as `gunicorn.workers=4`")
        if key in found.setdefault(server, {}):
            raise UsageError(
                f"`--set {text}`: `{target}` is set twice",
                hint=f"to measure several values: --set {target}=VALUE,VALUE",
            )
        found[server][key] = value if is_text(server, key) else _choice(text, value)
    return found


def _target(text: str) -> tuple[str, str]:
    """Return server and setting; those of the kernel have dots in their names."""
    for owner in (OF_SANDBOX, OF_APP):
        if text.startswith(f"{owner}."):
            return owner, text.removeprefix(f"{owner}.")
    server, _, key = text.rpartition(".")
    return server, key


def _choice(typed: str, text: str) -> Choice:
    values = tuple(
        int(one) if re.fullmatch(r"-?\d+", one) else one for one in map(str.strip, text.split(","))
    )
    if len(values) == 1:
        return values[0] if isinstance(values[0], int) else text
    if "" in values:
        raise UsageError(f"`--set {typed}`: a value is missing; expected values with commas, such as 2,4,8")
    double = next((one for one in values if values.count(one) > 1), None)
    if double is not None:
        raise UsageError(f"`--set {typed}`: `{double}` is there twice; expected each value once")
    return values


def single_settings_of(texts: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Return the settings of ``--set server.key=value`` where each has one value.

    *Errors*: UsageError as `settings_of`, or for several values.
    """
    found: dict[str, dict[str, Value]] = {}
    for server, choices in settings_of(texts).items():
        for key, choice in choices.items():
            if isinstance(choice, tuple):
                shown = ",".join(map(str, choice))
                raise UsageError(f"`--set {server}.{key}={shown}`: expected one value here")
            found.setdefault(server, {})[key] = choice
    return found

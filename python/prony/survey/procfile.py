"""A program that serves by itself, by a command that starts it. Pure.

>>> from prony.survey.sources import Folder
>>> folder = Folder({"serve": ""}.get, lambda path: [])
>>> program_of_process(folder, Written("`web` in Procfile", "./serve --port $PORT")).command
('{app_dir}/./serve', '--port', '{port}')
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from prony.archive.codec import is_secret
from prony.errors import UsageError
from prony.survey.current import NOT_PASSED
from prony.survey.go import go_program
from prony.survey.node import NPM_TOOLS, node_program
from prony.survey.php import PHP_TOOLS
from prony.survey.sources import Folder, Program
from prony.survey.written import Written

_PYTHON = re.compile(r"python[\d.]*|gunicorn|uvicorn|hypercorn|daphne|granian|waitress-serve|uwsgi")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT(?::?[-=][^}]*)?\})")
# Whatever else a shell would not only split at blanks.
_PLAIN = re.compile(r"[\w@%+=:,./ -]+")

# Servers that are given an address by their options: those, and what Prony writes in their place. The words
# go before the others where a file may end them, else behind them.
# *Source*: puma(1), rackup(1), unicorn(1); The Rails Command Line; Mojolicious::Command::daemon; PHP manual,
# Built-in web server.
_HOST_AND_PORT = ("--host", "{host}", "--port", "{port}")
_ADDRESSES: Mapping[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "puma": (frozenset({"-b", "--bind", "-p", "--port"}), ("-b", "tcp://{host}:{port}")),
    "rackup": (frozenset({"-o", "--host", "-p", "--port"}), _HOST_AND_PORT),
    "unicorn": (frozenset({"-l", "--listen", "-o", "--host", "-p", "--port"}), ("-l", "{host}:{port}")),
    "rails": (frozenset({"-b", "--binding", "-p", "--port"}), ("-b", "{host}", "-p", "{port}")),
    "perl": (frozenset({"-l", "--listen"}), ("-l", "http://{host}:{port}")),
    "php": (frozenset({"-S"}), ("-S", "{host}:{port}")),
}
_BEHIND = ("rails", "perl")
_DEBIAN = {"rackup": "ruby-rack"}
RUBY = ("puma", "rackup", "unicorn", "rails", "ruby")
# How programs of one's own name an option that holds an address.
_NAMED = re.compile(
    r"--?(?:addr|address|listen|listen-addr|listen-address|bind|http|http-addr|host|hostname|port|p)"
)
_ADDRESS = re.compile(r"(?P<scheme>[a-z]+://)?[\w.*\[\]:-]*?:\d{2,5}")


def program_of_process(folder: Folder, written: Written) -> Program:
    """Return the program that the process starts, built as the folder's other files say.

    *Errors*: UsageError for a server of Python, which is chosen otherwise, and as those of the language.
    """
    command, source = written.text, written.source
    if _PYTHON.fullmatch(command.split(maxsplit=1)[0].rpartition("/")[2]):
        raise UsageError(
            f"{source} is `{command}`, which names no app in Python; expected `module:attribute` in it",
            hint="name the app, and Prony compares servers for it: --app module:attribute",
        )
    words = _words(command)
    found = _by_shell(written) if words is None else _by_words(folder, source, words)
    passed = {name: value for name, value in written.environment.items() if _is_passed(name, value)}
    return replace(found, environment={**found.environment, **passed})


def _is_passed(name: str, value: str) -> bool:
    return name not in NOT_PASSED and not is_secret(name) and not set("${}") & set(value)


def _by_words(folder: Folder, source: str, words: Sequence[str]) -> Program:
    first, rest = words[0], tuple(words[1:])
    name, is_there = first.rpartition("/")[2], not first.startswith("/") and folder.has(first)
    match name:
        case "node" | "nodejs" | "npm":
            found = node_program(folder, "server.js")
            tool = "npm" if name == "npm" else "node"
            tools = NPM_TOOLS if tool == "npm" else found.tools
            return replace(found, command=(f"{{{tool}}}", *rest), source=source, tools=tools)
        case "php":
            return Program("php", "other", source, ("{php}", *rest), PHP_TOOLS, debian=("php-cli",))
        case _ if name in (*RUBY, "perl") and not is_there:
            return _of_debian(name, source, rest)
        case _ if folder.has("go.mod") and not is_there:
            built = go_program(folder, "", name)
            return replace(built, command=(*built.command, *rest), source=source)
    program = f"{{app_dir}}/{first}" if "/" in first else "{program}"
    tools = {} if "/" in first else {"program": (first,)}
    return Program(_name(first), "other", source, (program, *rest), tools)


def _of_debian(name: str, source: str, rest: tuple[str, ...]) -> Program:
    """Return a server of Ruby or Perl, with the packages that the system has of that language."""
    packages = "Debian's Ruby, in the place of the Gemfile's" if name in RUBY else "Debian's Perl"
    package = _DEBIAN.get(name, name)
    return Program(
        name, "other", source, (f"{{{name}}}", *rest), {name: (name,)}, packages=packages, debian=(package,)
    )


def _words(command: str) -> Sequence[str] | None:
    """Return the words of a plain command, with placeholders for its address; null: a shell must read it."""
    line = _PORT.sub("PORT", command)
    if set("{}$`") & set(line) or re.match(r"\w+=", line):
        return None
    try:
        words = shlex.split(_PORT.sub("{port}", command))
    except ValueError:
        return None
    words = words[2:] if words[:2] == ["bundle", "exec"] else words
    placed = _at_our_address(words)
    plain = (word.replace("{port}", "PORT").replace("{host}", "HOST") for word in placed)
    return placed if all(map(_PLAIN.fullmatch, plain)) else None


def _at_our_address(words: Sequence[str]) -> list[str]:
    """Return a command's words with Prony's address in the place of its own.

    >>> _at_our_address(["puma", "-p", "3000", "-C", "config/puma.rb"])
    ['puma', '-b', 'tcp://{host}:{port}', '-C', 'config/puma.rb']
    >>> _at_our_address(["links", "-addr", "127.0.0.1:8080", "-q"])
    ['links', '-addr', '{host}:{port}', '-q']
    """
    name = words[0].rpartition("/")[2]
    options, address = _ADDRESSES.get(name, (frozenset[str](), ()))
    if not address or (name == "perl" and "daemon" not in words):
        return _with_address(words)
    rest = _without(words[1:], options)
    if name == "php" and len(rest) == len(words) - 1:
        return list(words)
    return [words[0], *rest, *address] if name in _BEHIND else [words[0], *address, *rest]


def _without(words: Sequence[str], options: frozenset[str]) -> list[str]:
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in options:
            del rest[:1]
        elif word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def _with_address(words: Sequence[str]) -> list[str]:
    placed: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if equals and _NAMED.fullmatch(option):
            placed.append(f"{option}={_our_value(option, value)}")
        elif placed and _NAMED.fullmatch(placed[-1]):
            placed.append(_our_value(placed[-1], word))
        else:
            placed.append(word)
    return placed


def _our_value(option: str, value: str) -> str:
    if match := _ADDRESS.fullmatch(value):
        return f"{match['scheme'] or ''}{{host}}:{{port}}"
    name = option.lstrip("-")
    if name in ("host", "hostname"):
        return "{host}"
    return "{port}" if value.isdecimal() else value


def _by_shell(written: Written) -> Program:
    command, source = written.text, written.source
    line = _PORT.sub("$PORT", command)
    if "{" in line or "}" in line:
        raise UsageError(
            f"{source} is `{command}`, whose braces Prony does not pass to a shell",
            hint="write it into a script and name that: --command ./start.sh",
        )
    return Program("procfile", "other", source, ("{sh}", "-c", line), {"sh": ("sh",)})


def _name(program: str) -> str:
    """Return a server's name for a program.

    >>> _name("bin/Shop_Web.sh")
    'shop-web'
    """
    parts = re.split(r"[^a-z0-9]+", program.rpartition("/")[2].partition(".")[0].lower())
    return "-".join(part for part in parts if part) or "program"

"""A program that serves by itself, by a command that starts it. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> folder = Folder({"serve": ""}.get, lambda path: [])
>>> program_of_process(folder, Written("`web` in Procfile", "./serve --port $PORT")).command
('{app_dir}/./serve', '--port', '{port}')
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from posixpath import dirname, normpath

from prony.archive.codec import is_secret
from prony.catalog.discover.addresses import PLAIN, at_our_address
from prony.catalog.discover.current import NOT_PASSED, VARIABLE
from prony.catalog.discover.go import go_program
from prony.catalog.discover.images import assignments
from prony.catalog.discover.node import node_program, package_name
from prony.catalog.discover.php import php_command
from prony.catalog.discover.sources import Folder, Program, Written
from prony.catalog.discover.written import places_below
from prony.core.errors import UsageError

_PYTHON = re.compile(r"python[\d.]*|gunicorn|uvicorn|hypercorn|daphne|granian|waitress-serve|uwsgi")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT(?::?[-=][^}]*)?\})")

_DEBIAN = {"rackup": "ruby-rack", "morbo": "libmojolicious-perl"}
RUBY = ("puma", "rackup", "unicorn", "rails", "ruby")
# What starts the words behind it, in an environment that Prony does not make.
_INSIDE = ("bundle", "carton")
# They start the same scripts.
_LIKE_NPM = ("yarn", "pnpm")
_OF_PACKAGE = ("--filter", "-F", "--dir", "-C", "workspace", "--cwd")
_AGREED = ("-y", "--yes", "--no-install")
_OWN_SERVERS = ("daemon", "prefork")
_ASSIGNED = re.compile(r"(?:[A-Za-z_]\w*=\S*\s+)+")
# As platforms set them.
_DEPLOYED = {"RACK_ENV": "production", "RAILS_ENV": "production", "NODE_ENV": "production"}


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
    written = plainly(written)
    words = _words(folder, written)
    found = _by_shell(written) if words is None else _by_words(folder, source, words)
    return as_started_by(found, written)


def as_started_by(found: Program, written: Written) -> Program:
    """Return a program with the variables that the place of a command sets, and with what of that place is
    not taken over.
    """
    given = {name: value for name, value in written.environment.items() if name not in NOT_PASSED}
    passed = {name: written.value_here(value) for name, value in given.items() if _is_passed(name, value)}
    kept_back = ", ".join(f"`{name}`" for name in given if name not in passed)
    said = (f"{kept_back}: --env NAME=value passes a variable",) if kept_back else ()
    left_out = (*found.left_out, *written.remarks, *said)
    return replace(found, environment={**found.environment, **passed}, left_out=left_out)


def plainly(written: Written) -> Written:
    """Return a command with the variables before it among those that its place sets, and with the values in
    place of variables whose values are known there.

    >>> plainly(Written("", "PORT=80 DEBUG=0 ./shop -n ${COUNT:-3}")).text
    './shop -n 3'
    """
    before = _ASSIGNED.match(written.text)
    environment = {**written.environment, **(dict(assignments(before[0])) if before else {})}

    def known(match: re.Match[str]) -> str:
        name = match["plain"] or match["name"]
        value = environment.get(name, match["usual"] or _DEPLOYED.get(name))
        is_known = value and name != "PORT" and not is_secret(name) and not set("${}") & set(value)
        return str(value) if is_known else match[0]

    text = VARIABLE.sub(known, written.text[before.end() :] if before else written.text)
    is_plain = not set(_PORT.sub("", text)) & set("$;&|<>`")
    return replace(written, text=text, environment=environment) if is_plain else written


def _is_passed(name: str, value: str) -> bool:
    return not is_secret(name) and not set("${}") & set(value)


def _by_words(folder: Folder, source: str, words: Sequence[str]) -> Program:
    first, rest = words[0], tuple(words[1:])
    name = first.rpartition("/")[2]
    is_there = not first.startswith("/") and folder.has(first) and not folder.names(first)
    match name:
        case "node" | "nodejs" | "npm":
            tool = "npm" if name == "npm" else "node"
            return node_program(folder, source, (f"{{{tool}}}", *rest))
        case "go" if rest[:1] == ("run",) and folder.has("go.mod"):
            return _run_by_go(folder, source, rest[1:])
        case "php":
            return php_command(folder, source, rest)
        case _ if name in (*RUBY, "perl", "morbo") and not is_there:
            return _of_debian(name, source, rest)
        case _ if folder.has("go.mod") and not is_there:
            built = go_program(folder, "", name)
            return replace(built, command=(*built.command, *rest), source=source)
    program = f"{{app_dir}}/{first}" if "/" in first else "{program}"
    tools = {} if "/" in first else {"program": (first,)}
    return Program(_name(first), "other", source, (program, *rest), tools)


def _run_by_go(folder: Folder, source: str, words: tuple[str, ...]) -> Program:
    """Return the program of a package that is built and run, with the words behind the package.

    *Source*: go help run.
    """
    at = next((k for k, word in enumerate(words) if not word.startswith("-")), len(words))
    package = normpath(words[at]) if words[at:] else "."
    more = tuple(word for word in words[at + 1 :] if not word.endswith(".go"))
    package = dirname(package) if package.endswith(".go") else package.removeprefix(".")
    built = go_program(folder, package)
    return replace(built, command=(*built.command, *more), source=source)


def _of_debian(name: str, source: str, rest: tuple[str, ...]) -> Program:
    """Return a server of Ruby or Perl, with the packages that the system has of that language."""
    packages = "Debian's Ruby, in the place of the Gemfile's" if name in RUBY else "Debian's Perl"
    package = _DEBIAN.get(name, name)
    return Program(
        name, "other", source, (f"{{{name}}}", *rest), {name: (name,)}, packages=packages, debian=(package,)
    )


def _words(folder: Folder, written: Written) -> Sequence[str] | None:
    """Return the words of a plain command, with placeholders for its address; None: a shell must read it."""
    line = _PORT.sub("PORT", written.text)
    if set("{}$`") & set(line) or re.match(r"\w+=", line):
        return None
    try:
        words = shlex.split(_PORT.sub("{port}", written.text))
    except ValueError:
        return None
    words = [_here(folder, written, word, "" if at else "./") for at, word in enumerate(words)]
    if words[0] in _INSIDE and words[1:2] == ["exec"]:
        words = words[3:] if words[2:3] == ["--"] else words[2:]
    if not words:
        return None
    if words[0] in _LIKE_NPM:
        words = _by_npm(folder, words)
    elif words[0] == "npx":
        # *Source*: npm documentation, npx vs npm exec.
        named = next((at for at, word in enumerate(words) if at and word not in _AGREED), len(words))
        words = ["npm", "exec", "--silent", "--", *words[named:]]
    placed = at_our_address(_of_mojolicious(folder, words))
    plain = (word.replace("{port}", "PORT").replace("{host}", "HOST") for word in placed)
    return placed if all(map(PLAIN.fullmatch, plain)) else None


def _by_npm(folder: Folder, words: list[str]) -> list[str]:
    """Return the words by which npm runs the same script, also that of one package of several; those of a
    package that is not here as they are.

    *Source*: pnpm documentation, Filtering; Yarn documentation, yarn workspace.
    """
    option, equals, value = words[1].partition("=") if words[1:] else ("", "", "")
    rest = [option, value, *words[2:]] if equals else words[1:]
    there: list[str] = []
    if rest[:1] and rest[0] in _OF_PACKAGE:
        place = _package(folder, *rest[1:2])
        if not place:
            return words
        there, rest = ["--prefix", place], rest[2:]
    return ["npm", *there, "run", "--silent", *(rest[1:] if rest[:1] == ["run"] else rest)]


def _package(folder: Folder, name: str = "") -> str:
    """Return the folder of the package of this name, or path; empty: it is not here."""
    if (
        name
        and not name.startswith("/")
        and ".." not in name.split("/")
        and folder.has(f"{name}/package.json")
    ):
        return normpath(name)
    places = places_below(folder, ("node_modules",))
    return next((place for place in places if package_name(folder, place) == name), "")


def _here(folder: Folder, written: Written, word: str, before: str) -> str:
    """Return a whole path where the command stands as one in the app's folder, where that has it."""
    # What Go builds lies in the image alone, also where a package has its name.
    is_built = before and folder.has("go.mod")
    path = written.placed(word) if word.startswith("/") and not is_built else word
    return f"{before}{path}" if path != word and folder.has(path) else word


def _of_mojolicious(folder: Folder, words: list[str]) -> list[str]:
    """Return the words by which Perl starts a Mojolicious app. Hypnotoad, which takes its address from the
    app's configuration alone, is the server `prefork` with another configuration.

    *Source*: Mojo::Server::Hypnotoad, Mojo::Server::Prefork.
    """
    if words[:1] and words[0].rpartition("/")[2] == "hypnotoad":
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        return ["perl", script, "prefork", "-m", "production"]
    is_script = words[1:2] and words[1] in _OWN_SERVERS and "perl" in (folder.read(words[0]) or "")[:40]
    return ["perl", *words] if is_script else words


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

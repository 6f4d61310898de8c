"""Which program a folder has, and what of an app in Python its other files say. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> files = {"go.mod": "module shop", "main.go": "package main\\n\\nfunc main() {}"}
>>> find_program(".", Folder(files.get, lambda path: list(files) if not path else [])).name
'go'

Which servers an app is compared on, unless its user names some. Pure.

>>> usual_servers(Interface.ASGI)[0]
'uvicorn'

A program that serves by itself, by a command that starts it. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> folder = Folder({"serve": ""}.get, lambda path: [])
>>> program_of_process(folder, Written("`web` in Procfile", "./serve --port $PORT")).command
('{app_dir}/./serve', '--port', '{port}')
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import dirname, normpath

from prony.archive.codec import is_secret
from prony.catalog.discover.current import NOT_PASSED, TYPED, VARIABLE, commands_below
from prony.catalog.discover.go import go_program, is_binary, is_main_package
from prony.catalog.discover.images import assignments
from prony.catalog.discover.node import (
    as_package,
    has_package,
    is_node,
    node_program,
    package_name,
    required_packages,
)
from prony.catalog.discover.php import is_php, php_command, php_program
from prony.catalog.discover.servers import PLAIN, at_our_address
from prony.catalog.discover.sources import Folder, Program, Written
from prony.catalog.discover.variables import names_of_env_file
from prony.catalog.discover.written import (
    CLOSING,
    lines_of_script,
    only_place,
    places_below,
    written_commands,
)
from prony.core.errors import UsageError
from prony.model.subject import Interface

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
    left_out = (*found.left_out, *written.left_out, *said)
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


# --- which program a folder has ---------------------------------------------------------------------------


# For each interface at most four: the commonest first, and of those alike in kind only one. Each pair differs
# in how it serves requests at the same time.
_SERVERS: Mapping[Interface, tuple[str, ...]] = {
    # Processes; threads; processes in C, behind a router: without it a connection keeps a worker; threads in
    # Rust.
    Interface.WSGI: ("gunicorn", "waitress", "uwsgi-two-a-cpu", "granian"),
    # An event loop in Python and C; in Rust; in Python alone.
    Interface.ASGI: ("uvicorn", "granian", "hypercorn"),
    # Processes with keep-alive; without; an event loop; one in C.
    Interface.PSGI: ("starman", "starlet", "twiggy", "feersum"),
    # Processes of PHP alone; workers in C, with PHP in them.
    Interface.PHP: ("php-fpm@nginx", "uwsgi-php"),
    # Threads in processes; processes without keep-alive.
    Interface.RACK: ("puma", "unicorn"),
    Interface.NONE: (),
}


def usual_servers(interface: Interface) -> tuple[str, ...]:
    """Return the servers on which apps of this interface are compared."""
    return _SERVERS[interface]


_DESCRIBING = ("Procfile", "go.mod", "package.json", "composer.json")
_SCRIPTS = (".js", ".mjs", ".cjs")
_EXPECTED = (
    "manage.py, a module such as app.py or wsgi.py, Procfile, go.mod, package.json, config.ru, "
    "app.psgi, index.php or public/index.php"
)


def find_program(
    typed: str, folder: Folder, command: str = "", above: Sequence[Written] = ()
) -> Program | None:
    """Return the program that was typed: ``.`` for the folder's own, a file that describes it, a script, or
    the folder of a package in Go. Null: it is none. ``command``: what starts the folder's own; ``above``: the
    commands for it that stand in folders above.

    *Errors*: UsageError for a folder that does not say how its program is started, or lacks what it needs.
    """
    path = _normal(typed)
    if typed.startswith("/") or ".." in typed.split("/"):
        return None
    if path:
        found = _of_path(path, folder, command) if folder.has(path) else None
    elif command:
        found = program_of_process(folder, Written(TYPED, command))
    else:
        found = _of_folder(folder, above)
    is_named = found is None or any("--env-file" in one for one in found.left_out)
    return found if found is None or is_named else replace(found, offered=names_of_env_file(folder.read))


def _of_path(path: str, folder: Folder, command: str) -> Program | None:
    if path in _DESCRIBING:
        return _described_by(path, folder)
    if has_package(folder, path):
        there, typed = folder.below(path), Written(TYPED, command)
        above = commands_below(folder, path)
        own = program_of_process(there, typed) if command else _of_folder(there, above)
        return as_package(own, folder, path) if own.name == "node" else None
    if path.endswith(_SCRIPTS):
        return node_program(folder, path)
    if path.endswith(".php"):
        return php_program(folder, path)
    package = path.rpartition("/")[0] if path.endswith(".go") else path
    return go_program(folder, package) if is_main_package(folder, package) and folder.has("go.mod") else None


def _normal(typed: str) -> str:
    """Return a path in the app's folder; the folder itself is empty.

    >>> _normal("./cmd/shop/"), _normal(".")
    ('cmd/shop', '')
    """
    return "/".join(part for part in typed.split("/") if part not in ("", "."))


def program_below(folder: Folder) -> str | None:
    """Return the folder below this one that has a program; None: there is none.

    *Errors*: UsageError when there are several.
    """
    places = [place for place in places_below(folder, _NO_APPS) if is_program(folder.below(place))]
    # A library is no program, though it says what would start.
    required = {name for place in places for name in required_packages(folder.below(place))}
    return only_place([one for one in places if package_name(folder, one) not in required] or places)


# They have scripts and packages of their own.
_NO_APPS = ("node_modules", "vendor", "test", "tests", "docs", "scripts", "examples")


def is_program(folder: Folder) -> bool:
    """Return whether a folder says how a program is started that listens on a port itself."""
    return describes_program(folder) or any(
        _names_program(one, folder) for one in _expanded(folder, written_commands(folder))
    )


def describes_program(folder: Folder) -> bool:
    """Return whether a folder has a program's own files, whatever starts it elsewhere."""
    has_own = any(folder.has(name) for name in ("Procfile", "go.mod", "config.ru"))
    return has_own or is_php(folder) or is_node(folder)


def _of_folder(folder: Folder, above: Sequence[Written]) -> Program:
    """Of several descriptions the one that says it most exactly: scripts of ``package.json`` may only build
    what another language serves.
    """
    written = [*written_commands(folder), *above]
    expanded = list(_expanded(folder, written))
    at = next((k for k, one in enumerate(expanded) if _names_program(one, folder)), len(expanded))
    passed_over = tuple(f"{one.source}: `{one.text}`, which Prony does not start" for one in written[:at])
    if expanded[at:]:
        found = program_of_process(folder, expanded[at])
    else:
        # What it is started in has its variables, whatever starts it there.
        around = written[0] if written else Written("", "")
        found = as_started_by(_of_files(folder, written), around)
    return replace(found, left_out=(*dict.fromkeys(passed_over), *found.left_out))


def _of_files(folder: Folder, written: Sequence[Written]) -> Program:
    """Return what the folder's files describe beside the commands, of which none is ``written`` for it."""
    if folder.has("go.mod"):
        return go_program(folder, "")
    if is_php(folder):
        return php_program(folder, "")
    if folder.has("config.ru"):
        # *Source*: Puma's README: what runs a Rack app by itself.
        return program_of_process(folder, Written("config.ru", "puma"))
    if folder.has("package.json"):
        return node_program(folder, "")
    if script := next(_scripts_alone(folder), None):
        return program_of_process(folder, script)
    said = next(
        (f"{one.source} is `{one.text}`, of which nothing is here that Prony can start" for one in written),
        "",
    )
    raise UsageError(
        f"`--app .`: {said or 'nothing in the folder says how its app is started'}; expected {_EXPECTED}",
        hint="name the app, --app module:attribute; or what starts it, --command './shop --port {port}'",
    )


# What a person types for the script of an app that is one file, by what stands in it.
# *Source*: Sinatra's README; Mojolicious::Lite; Dancer2.
_ALONE = (
    (("app.rb", "main.rb", "server.rb", "web.rb"), r"require ['\"]sinatra['\"]", "ruby {}"),
    (("app.pl", "main.pl", "server.pl", "web.pl", "myapp.pl"), r"use Mojolicious::Lite\b", "perl {} daemon"),
    (("app.pl", "main.pl", "server.pl", "bin/app.pl"), r"use Dancer2?\b", "perl {}"),
)


def _scripts_alone(folder: Folder) -> Iterator[Written]:
    for names, shape, command in _ALONE:
        for name in names:
            if re.search(shape, folder.read(name) or ""):
                yield Written(name, command.format(name))


def _expanded(folder: Folder, written: Sequence[Written]) -> Iterator[Written]:
    """Yield the last step of each command; of a shell's script of the folder, that of what it ends with."""
    for one in written:
        lines = (line for line in lines_of_script(folder.read, one) if line.text not in CLOSING)
        last = next((_last_step(line, folder) for line in lines), None)
        text = last.text.removeprefix("exec ") if last else ""
        is_last = last is not None and (
            text != last.text or (not text.endswith("&") and _starts_program(text, folder))
        )
        yield replace(last, text=text) if last and is_last else _last_step(one, folder)


# What a shell reads as one, and where a step ends; what waits for a port starts what is behind two dashes.
_STEPS = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|(?P<end>&&|;|\n|[ ]--[ ])|.""", re.DOTALL)
_DASHES = " -- "
# No line that starts a program is longer.
_LONGEST = 4000


def _last_step(written: Written, folder: Folder) -> Written:
    """Return the last of a shell's steps where that starts a program of the folder; else all of them."""
    text = written.text[:_LONGEST]
    ends = [match for match in _STEPS.finditer(text) if match["end"]]
    if text.partition(" ")[0].rpartition("/")[2] in _STARTED:
        # Its own options may be behind two dashes.
        ends = [match for match in ends if match["end"] != _DASHES]
    for end in reversed(ends):
        before, last = text[: end.start()], written.text[end.end() :].strip().removeprefix("exec ")
        if _starts_program(last, folder):
            said = f"`{' '.join(before.split())}`, which is not run"
            return replace(written, text=last, remarks=(*written.remarks, said))
        if end["end"] != _DASHES:
            break
    return written


def _starts_program(text: str, folder: Folder) -> bool:
    return bool(text) and _names_program(Written("", text), folder)


# What the other files start that describe a folder, and Prony can start.
_STARTED = (
    "node",
    "nodejs",
    "npm",
    "npx",
    "yarn",
    "pnpm",
    "go",
    "php",
    "bundle",
    "carton",
    "perl",
    "hypnotoad",
    "morbo",
    *RUBY,
)


def _names_program(written: Written, folder: Folder) -> bool:
    """Return whether a command starts a program of this folder: a Procfile's does; in an image lie others."""
    first, *rest = plainly(written).text.split(maxsplit=2) or [""]
    is_built = folder.has("go.mod") and ("/" in first or is_binary(folder, first))
    is_path = is_built or ("/" in first and rest[:1] in (["daemon"], ["prefork"]))
    return is_path or first.rpartition("/")[2] in _STARTED or written.source.endswith("in Procfile")


def _described_by(name: str, folder: Folder) -> Program | None:
    match name:
        case "Procfile":
            written = [one for one in written_commands(folder) if one.source.endswith(f"in {name}")]
            return program_of_process(folder, written[0]) if written else None
        case "go.mod":
            return go_program(folder, "")
        case "composer.json":
            return php_program(folder, "")
        case _:
            return node_program(folder, "")

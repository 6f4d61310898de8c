"""Which program a folder has, and what of an app in Python its other files say. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> files = {"go.mod": "module shop", "main.go": "package main\\n\\nfunc main() {}"}
>>> find_program(".", Folder(files.get, lambda path: list(files) if not path else [])).name
'go'

Which servers an app is compared on, unless its user names some. Pure.

>>> usual_servers(Interface.ASGI)[0]
'uvicorn'
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from prony.catalog.discover.current import TYPED
from prony.catalog.discover.go import go_program, is_binary, is_main_package
from prony.catalog.discover.node import is_node, node_program
from prony.catalog.discover.php import is_php, php_program
from prony.catalog.discover.procfile import RUBY, as_started_by, plainly, program_of_process
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
        found = _of_path(path, folder) if folder.has(path) else None
    elif command:
        found = program_of_process(folder, Written(TYPED, command))
    else:
        found = _of_folder(folder, above)
    is_named = found is None or any("--env-file" in one for one in found.left_out)
    return found if found is None or is_named else replace(found, offered=names_of_env_file(folder.read))


def _of_path(path: str, folder: Folder) -> Program | None:
    if path in _DESCRIBING:
        return _described_by(path, folder)
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
    return only_place([place for place in places_below(folder, _NO_APPS) if is_program(folder.below(place))])


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

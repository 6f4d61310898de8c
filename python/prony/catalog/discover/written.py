"""The commands that start an app, as the files of its folder have them. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> files = {"Dockerfile": 'FROM python\\nENV DEBUG=0\\nCMD ["gunicorn", "shop:app", "-w", "3"]'}
>>> found = written_commands(Folder(files.get, lambda path: []))[0]
>>> found.source, found.text, dict(found.environment)
('`CMD` in Dockerfile', 'gunicorn shop:app -w 3', {'DEBUG': '0'})
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import basename, join, normpath

from prony.catalog.discover.compose import COMPOSE, composed, context_of, services
from prony.catalog.discover.configuration import yaml_table
from prony.catalog.discover.images import DOCKERFILES, Image, as_text, assignments, place_of, read_image
from prony.catalog.discover.scripts import called_module, named_scripts, served_by
from prony.catalog.discover.sources import CONTINUED, Folder, Read, Sources, Written, read_below
from prony.catalog.discover.units import commands_of_units
from prony.core.errors import UsageError

# *Source*: Heroku documentation, The Procfile.
_WEB = re.compile(r"^web[ \t]*:[ \t]*(?P<command>\S.*?)[ \t]*$", re.MULTILINE)
# No line that starts an app is longer, and no value in it.
_LONGEST, _LONGEST_VALUE = 20_000, 500


def written_commands(folder: Folder) -> list[Written]:
    """Return all commands that the folder's files have, the one that counts first."""
    read = folder.read
    found = (
        *_of_procfile(read),
        *(one for name in DOCKERFILES for one in _of_image(read, name)),
        *composed(read, "."),
        *commands_of_units(folder),
        *folder.installed,
        *_of_platforms(read),
        *_of_render(read, "."),
        *_of_makefile(read),
    )
    # What a person types counts where nothing else says it.
    typed = () if found else (*_of_composer(read), *_of_shells(read))
    found = (*found, *typed, *_of_main(read))
    return [unwrapped(read, one) for one in found or _of_project(read)]


# --- what only starts something else ----------------------------------------------------------------------

_SHELL = re.compile(r"#!.*sh\b")
# A script of an image's that ends with what it was given.
_HANDS_ON = re.compile(
    r"""^[ \t]*(?:(?:exec|eval)[ \t][^\n]*)?"?\$\{?@\}?"?\s*(?:(?:fi|done|esac|;;)\s*)*\Z""", re.MULTILINE
)
_EXPORTED = re.compile(r"^[ \t]*(?P<export>export[ \t]+)?(?P<name>[A-Za-z_]\w*)=(?P<value>\S.*)$")
# What answers before it, and passes requests on. *Source*: README of Thruster.
_PROXIES = ("thrust",)
# *Source*: README of tini and of dumb-init; the images `node` and `php` of Docker.
_BEFORE = ("exec", "command", "env", "nohup")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = ("tini", "dumb-init", "catatonit", "docker-entrypoint.sh", "docker-php-entrypoint")


# A step of a command that only changes the folder of what follows.
_CHANGES = re.compile(r"(?:^|(?<=&&)|(?<=;))[ \t]*cd[ \t]+(?P<place>[\w./-]+)[ \t]*(?:&&|;)[ \t]*")
_SHELLS = ("sh", "bash")


def unwrapped(read: Read, written: Written) -> Written:
    """Return a command without what only starts it, in the folder to which it changes first."""
    plain = _unwrapped(read, written)
    moved = _moved(read, plain)
    found = moved if moved.text == plain.text else _unwrapped(read, moved)
    return found if found.text == written.text else replace(found, is_whole=False)


def _moved(read: Read, written: Written) -> Written:
    """Return a command that works in a folder of the app's without the steps that change to it."""
    place = written.place
    for found in _CHANGES.finditer(written.text):
        place = normpath(join(place, written.placed(found["place"])))
    place = "" if place == "." else place
    if place and (place.startswith(("/", "..")) or read(place) is None):
        # It lies elsewhere: as it is where no step changes to it.
        return written if place != written.place else replace(written, place="")
    return replace(written, place=place, text=_CHANGES.sub(" ", written.text).strip())


def _by_shell(text: str) -> tuple[str, str]:
    """Return the text that a shell is given as one word, and what is set before it; empty: it is given none.

    >>> _by_shell("A=1 exec bash -ec 'python manage.py migrate && exec gunicorn shop:app'")
    ('python manage.py migrate && exec gunicorn shop:app', 'A=1')
    """
    try:
        words = shlex.split(text) if any(f"{shell} -" in text for shell in _SHELLS) else []
    except ValueError:
        return "", ""
    at = next((k for k, word in enumerate(words) if word not in _BEFORE and not _ASSIGNED.match(word)), 0)
    if not words or basename(words[at]) not in _SHELLS:
        return "", ""
    given = next((k for k, word in enumerate(words) if k > at and re.fullmatch(r"-[a-z]*c", word)), 0)
    if not given or any(word[0] != "-" and word != "pipefail" for word in words[at + 1 : given] if word):
        return "", ""
    inner = words[given + 1] if words[given + 1 :] else ""
    return inner.strip(), shlex.join(word for word in words[:at] if _ASSIGNED.match(word))


def _unwrapped(read: Read, written: Written) -> Written:
    """Return a command without the programs and scripts before it that only start it."""
    inner, before = _by_shell(written.text)
    if inner:
        environment = {**written.environment, **dict(assignments(before))}
        # What starts it in the shell's place is the shell's own word.
        inner = inner.removeprefix("exec ").lstrip()
        return _unwrapped(read, replace(written, text=inner, environment=environment))
    if said := _by_composer(read, written.text):
        return _unwrapped(read, replace(written, text=said))
    first, _, rest = written.text.partition(" ")
    # One of the folder's own may have the name of an image's.
    own, name = _script(read, written, first)[1], basename(first)
    if rest and not own and name in (*_BEFORE, *_WRAPPERS):
        words = rest.split(" ")
        at = next((k for k, word in enumerate(words) if word and word[0] != "-"), len(words))
        return _unwrapped(read, replace(written, text=" ".join(words[at:]))) if words[at:] else written
    is_proxy = name in _PROXIES
    hands_on = is_proxy or name in _WRAPPERS or _HANDS_ON.search(own)
    if not rest or not hands_on:
        return written
    what = "the proxy before it, which is not started" if is_proxy else "which is not run"
    remarks = (*written.remarks, f"`{first}`, {what}")
    return _unwrapped(read, replace(written, text=rest, remarks=remarks))


def _script(read: Read, written: Written, word: str) -> tuple[str, str]:
    """Return the path in the folder and the text of a shell's script; both empty: it is none."""
    path = written.placed(word) if word.startswith("/") else word.removeprefix("./")
    if not path.startswith(("/", "..")) and (text := read(path)) is None and written.base:
        path = written.placed(normpath(join(written.base, path)))
    text = "" if path.startswith(("/", "..")) else read(path) or ""
    return (path, text) if _SHELL.match(text) or (text and path.endswith(".sh")) else ("", "")


def lines_of_script(read: Read, written: Written) -> Iterator[Written]:
    """Yield each command of the shell's script that a command starts, the last first, with what the script
    sets its variables to in their place. None: it starts no script of the folder.
    """
    for word in written.text.split()[:2]:
        path, text = _script(read, written, word)
        lines = [line for line in CONTINUED.sub(" ", text).splitlines() if len(line) < _LONGEST]
        set_there = [match for line in lines if (match := _EXPORTED.match(line))]
        exported = (
            f"{one['name']}={_without_own(one['name'], one['value'])}" for one in set_there if one["export"]
        )
        environment = {**written.environment, **dict(pair for one in exported for pair in assignments(one))}
        values = {one["name"]: one["value"].strip().strip("\"'") for one in set_there}
        place, placed = "", list[tuple[str, str]]()
        for line in (line.strip() for line in lines if not line.lstrip().startswith("#")):
            place = f"cd {changed[1]} && " if (changed := _CHANGES_ALONE.fullmatch(line)) else place
            placed.append((place, line))
        for place, line in reversed(placed):
            one = replace(
                written,
                source=path if path == written.source else f"{path}, by {written.source}",
                text=place + _with_values(line, values),
                environment=environment,
                remarks=(*written.remarks, f"the rest of {path}"),
            )
            moved = _moved(read, one)
            yield replace(one, text=one.text.removeprefix(place)) if moved is one else moved


_CHANGES_ALONE = re.compile(r"cd[ \t]+([\w./-]+)")
CLOSING = ("fi", "done", "esac", "}", "else", "wait", ";;", "")
"""Lines of a shell's script that only end something."""


def _without_own(name: str, value: str) -> str:
    """Return a value that has a variable's own before it as the value that it has without that."""
    match = re.fullmatch(rf"""["']?\$\{{{name}:?[-=](.*)\}}["']?""", value.strip())
    return match[1] if match else value


def _with_values(text: str, values: Mapping[str, str]) -> str:
    """Return a shell's line with the variables' values, as they are written, in their place.

    >>> _with_values('gunicorn -w "$COUNT" -b :$PORT shop:app', {"COUNT": '${COUNT:-"3"}'})
    'gunicorn -w "${COUNT:-3}" -b :$PORT shop:app'
    """
    return re.sub(
        r"\$(?:(\w+)|\{(\w+)\})",
        lambda match: values.get(match[1] or match[2], match[0]).replace('"', "")[:_LONGEST_VALUE],
        text,
    )


def _of_procfile(read: Read) -> Iterator[Written]:
    found = _WEB.search(read("Procfile") or "")
    if found:
        yield Written("`web` in Procfile", found["command"])


# *Source*: documentation of App Engine, Fly.io, Nixpacks, Railway and Render on the command that starts.
_PLATFORMS = {
    "app.yaml": r"^entrypoint:[ \t]*(.+)$",
    "fly.toml": r"^[ \t]*(?:app|web)[ \t]*=[ \t]*[\"'](\S+[ \t].+)[\"'][ \t]*$",
    "nixpacks.toml": r"^[ \t]*cmd[ \t]*=[ \t]*[\"'](.+)[\"'][ \t]*$",
    "railway.json": r'"startCommand"[ \t]*:[ \t]*"([^"]+)"',
    "railway.toml": r"^[ \t]*startCommand[ \t]*=[ \t]*[\"'](.+)[\"'][ \t]*$",
}


def _of_platforms(read: Read) -> Iterator[Written]:
    for name, pattern in _PLATFORMS.items():
        if found := re.search(pattern, read(name) or "", re.MULTILINE):
            yield Written(name, found[1].strip().strip("\"'"))


def _of_render(read: Read, place: str) -> Iterator[Written]:
    """Yield what starts the services of Render's that serve, whose root is the folder ``place``.

    *Source*: Render documentation, Blueprint YAML Reference: type, rootDir, startCommand.
    """
    found = yaml_table(read("render.yaml")).get("services")
    services = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    for one in services:
        said, at = one.get("startCommand"), normpath(str(one.get("rootDir") or "."))
        serves = at == place and one.get("type") in ("web", "pserv", None)
        if serves and isinstance(said, str) and said.strip():
            yield Written("render.yaml", said.strip())


# What people name the target that serves, the likeliest first; those of Just may have arguments.
_TARGETS = ("run", "serve", "start", "web", "server", "up", "dev")
_RECIPE = r"^%s(?P<given>[ \t][^:\n]*)?:(?!=)[^=\n]*\n(?P<recipe>(?:[ \t]+\S.*\n?)+)"
# What these start stands in files of their own.
_ELSEWHERE = re.compile(r"(?:docker|podman|docker-compose|podman-compose|make|just)\b")
_GIVEN = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S+)")
# *Source*: GNU make manual, Setting Variables.
_MAKE_VARIABLE = re.compile(r"^(\w+)[ \t]*[:?]{0,3}=[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_MAKE_NAME = re.compile(r"(?<!\$)\$[({](\w+)[)}]|\{\{[ \t]*(\w+)[ \t]*\}\}")
_MAIN = re.compile(r"""^if __name__ == ["']__main__["']""", re.MULTILINE)
PORT_READ = re.compile(r"""["']PORT["']""")
"""What a script in Python has that takes its port from the variable."""

_SCRIPTS = ("app.py", "main.py", "server.py", "run.py")


def _of_makefile(read: Read) -> Iterator[Written]:
    """*Source*: GNU make manual, Splitting Recipe Lines; Just Programmer's Manual."""
    for name in ("Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile"):
        text = CONTINUED.sub(" ", read(name) or "")
        found = (re.search(_RECIPE % target, text, re.MULTILINE) for target in _TARGETS)
        lines = ((one["recipe"].splitlines()[-1].strip().lstrip("@-+ "), one) for one in found if one)
        line, one = next((pair for pair in lines if not _ELSEWHERE.match(pair[0])), ("", None))
        if one is not None:
            values = dict(_MAKE_VARIABLE.findall(text))
            if "just" in name.lower():
                values |= dict(_GIVEN.findall(one["given"] or ""))
                values = {key: value.strip("\"'") for key, value in values.items()}
            yield Written(name, _with_made(line, values))


def _with_made(line: str, values: Mapping[str, str]) -> str:
    """Return a recipe's line with variables of Make's or Just's filled in."""
    for _ in range(3):  # a value may name others
        line = _MAKE_NAME.sub(
            lambda match: values.get(match[1] or match[2], match[0])[:_LONGEST_VALUE], line[:_LONGEST]
        )
    return line.replace("$$", "$")


def _of_main(read: Read) -> Iterator[Written]:
    """Yield scripts that serve when they are run: where `PORT` says, or with a call that says it all."""
    for name in _SCRIPTS:
        text = read(name) or ""
        is_run = bool(_MAIN.search(text))
        if is_run and (PORT_READ.search(text) or served_by(Sources(read), name.removesuffix(".py"))):
            yield Written(f"the end of {name}", f"python {name}")


# Where people keep the script that they start by hand, and how a line of it starts what serves.
_SHELL_SCRIPTS = (
    *("start.sh", "run.sh", "serve.sh", "server.sh", "bin/start", "bin/server", "bin/start.sh", "bin/run.sh"),
    *("scripts/start.sh", "scripts/run.sh", "entrypoint.sh", "docker-entrypoint.sh"),
)
_SERVING_LINE = re.compile(
    r"(?!(?:exec |sudo )?(?:docker|podman|ssh|kubectl))(?:^|.*[\s/])"
    r"(?:gunicorn|uvicorn|hypercorn|granian|waitress-serve|daphne|uwsgi|flask|fastapi|sanic|litestar|quart"
    r"|node|npm|npx|yarn|pnpm|go (?:run|build)|php -S|puma|rackup|unicorn|rails|starman|twiggy|plackup"
    r"|hypnotoad|morbo|(?:app|main|server|run|wsgi|asgi|manage)\.(?:py|rb|pl))\s.*"
)


def _of_shells(read: Read) -> Iterator[Written]:
    """Yield the shell's scripts that end with what serves."""
    for name in _SHELL_SCRIPTS:
        for line in lines_of_script(read, Written(name, f"./{name}")):
            if line.text in CLOSING:
                continue
            if len(line.text) < _LONGEST_VALUE and _SERVING_LINE.fullmatch(f"{line.text} "):
                yield Written(name, f"./{name}")
            break


# --- the scripts of a project -----------------------------------------------------------------------------


_OF_COMPOSER = ("composer", "composer.phar")
_NO_SCRIPTS = ("run", "run-script")


def _by_composer(read: Read, text: str) -> str:
    """Return the command of PHP's that a script of Composer's runs; empty: the text runs none.

    *Source*: Composer documentation, Scripts: `@php` is PHP itself.
    """
    words = text.split()
    if not words or basename(words[0]) not in _OF_COMPOSER:
        return ""
    names = (word for word in words[1:] if word[0] != "-" and word not in _NO_SCRIPTS)
    return _of_composers_script(read, next(names, ""))


def _of_composer(read: Read) -> Iterator[Written]:
    for name in _TARGETS:
        said = _of_composers_script(read, name)
        if " -S " in said:
            yield Written(f"`scripts.{name}` in composer.json", said)


def _of_composers_script(read: Read, name: str) -> str:
    text = read("composer.json")
    try:
        manifest = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return ""
    scripts = manifest.get("scripts") if isinstance(manifest, dict) else None
    said = scripts.get(name) if isinstance(scripts, dict) else None
    lines = said if isinstance(said, list) else [said]
    of_php = [line.removeprefix("@") for line in lines if isinstance(line, str)]
    return next((line for line in reversed(of_php) if line.startswith("php ")), "")


def _of_project(read: Read) -> Iterator[Written]:
    """Yield a project's scripts that start a server; of those that serve where `PORT` says, and of commands,
    only those with a usual name: others may want a word more.
    """
    for name, text in sorted(named_scripts(read), key=lambda one: one[0] not in _TARGETS):
        module = called_module(text.removeprefix("python -c ").strip("'"))
        served = served_by(Sources(read), module) if module else None
        is_usual = name in _TARGETS
        if module and (found := Sources(read).module(module)):
            reads_port = bool(PORT_READ.search(read(found.path) or ""))
            serves = is_usual if reads_port else bool(served)
        else:
            is_short = len(text) < _LONGEST_VALUE
            serves = is_usual and is_short and bool(_SERVING_LINE.fullmatch(f"{text} "))
        if serves:
            yield Written(f"the script `{name}` of the project", text)


# --- Dockerfile -------------------------------------------------------------------------------------------


# Images of a server with a script that starts it.
_WITH_GUNICORN = re.compile(r"(?:docker\.io/)?tiangolo/uvicorn-gunicorn(?:-\w+)?(?::\S*)?")


def _of_image(read: Read, name: str) -> Iterator[Written]:
    image = read_image(read, name)
    is_server = image is not None and _WITH_GUNICORN.fullmatch(image.origin)
    if image and is_server and not (image.entry or image.command):
        yield _by_gunicorn(read, replace(image, base=image.base or "/app"), name)
        return
    text = image.starts(as_text(image.command)) if image else ""
    if image and text:
        kinds = " and ".join(
            kind for kind, said in (("ENTRYPOINT", image.entry), ("CMD", image.command)) if said
        )
        yield Written(
            f"`{kinds or f'FROM {image.origin}'}` in {name}",
            text,
            image.environment,
            image.base,
            place=place_of(image.base, image.laid, image.copies),
            copies=image.copies,
        )


def _by_gunicorn(read: Read, image: Image, name: str) -> Written:
    """*Source*: tiangolo/uvicorn-gunicorn: its README, start.sh and gunicorn_conf.py."""
    said = image.environment
    is_package = read(Written("", "", copies=image.copies).placed("/app/app/main.py")) is not None
    module = said.get("MODULE_NAME", "app.main" if is_package else "main")
    app = said.get("APP_MODULE", f"{module}:{said.get('VARIABLE_NAME', 'app')}")
    workers = "the number of workers, which that image takes from its machine's CPUs, two at least"
    counted = "" if "WEB_CONCURRENCY" in said else " -w $WEB_CONCURRENCY"
    return Written(
        f"`FROM {image.origin}` in {name}",
        # Without the variable nobody knows the number: it is no command of one worker.
        f"gunicorn{counted} -k uvicorn.workers.UvicornWorker {app}",
        said,
        image.base,
        () if "WEB_CONCURRENCY" in said else (workers,),
        place=place_of(image.base, image.laid, image.copies),
        copies=image.copies,
    )


def laid_below(folder: Folder) -> str:
    """Return the folder below this one in which a command of its files works; empty: there is none."""
    return next((one.place for one in written_commands(folder) if one.place), "")


def as_below(written: Written, place: str) -> Written:
    """Return a command with the paths of its copies as paths in the folder ``place``."""
    copies = ((at, f"{path}/") for at, path in written.copies)
    inner = (
        (at, path.removeprefix(f"{place}/") or ".") for at, path in copies if path.startswith(f"{place}/")
    )
    return replace(written, place="", copies=tuple((at, path.rstrip("/")) for at, path in inner))


# --- folders below ----------------------------------------------------------------------------------------


def composed_below(read: Read, place: str) -> list[Written]:
    """Return the commands of the services that Compose or Render build from a folder ``place`` below."""
    found = (*composed(read, place), *_of_render(read, place))
    return [unwrapped(read_below(read, place), one) for one in found]


# Of repositories with several: documentation of npm, pnpm and Turborepo on workspaces; Compose's examples.
_HOLDERS = ("apps", "packages", "services")


def places_below(folder: Folder, but: Sequence[str]) -> list[str]:
    """Return the folders below this one that may have its app, but some: those that Compose builds first."""
    built = (context_of(table.get("build")) for name in COMPOSE for _, table in services(folder.read, name))
    there = [name for name in folder.names("") if name not in but and not name.startswith(".")]
    deeper = [f"{name}/{one}" for name in there if name in _HOLDERS for one in folder.names(name)]
    return [place for place in dict.fromkeys([*built, *there, *deeper]) if place not in (".", *but)]


def only_place(found: Sequence[str]) -> str | None:
    """Return the only folder that was found; None without one.

    *Errors*: UsageError when there are several.
    """
    if len(found) > 1:
        raise UsageError(
            f"`--app .`: apps are in {', '.join(f'`{name}`' for name in found)}; expected the folder of one",
            hint=f"--dir {found[0]} --app .",
        )
    return next(iter(found), None)

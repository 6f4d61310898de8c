"""The commands that start an app, as the files of its folder have them. Pure.

>>> from prony.survey.sources import Folder
>>> files = {"Dockerfile": 'FROM python\\nENV DEBUG=0\\nCMD ["gunicorn", "shop:app", "-w", "3"]'}
>>> found = written_commands(Folder(files.get, lambda path: []))[0]
>>> found.source, found.text, dict(found.environment)
('`CMD` in Dockerfile', 'gunicorn shop:app -w 3', {'DEBUG': '0'})
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prony.errors import UsageError
from prony.survey.configuration import yaml_document
from prony.survey.sources import Folder, Read

# *Source*: Heroku documentation, The Procfile.
_WEB = re.compile(r"^web[ \t]*:[ \t]*(?P<command>\S.*?)[ \t]*$", re.MULTILINE)
_DOCKERFILES = ("Dockerfile", "Containerfile")
# *Source*: Compose specification, The Compose file.
_COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
_UNIT_FOLDERS = (
    "",
    "deploy",
    "deploy/systemd",
    "systemd",
    "etc",
    "etc/systemd/system",
    "conf",
    "config",
    "ops",
)
# *Source*: systemd.service(5), Table 2: special executable prefixes.
_UNIT_PREFIXES = "@-:+!|"
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Written:
    """A command as it stands in ``source``. ``text``: for a shell to read; ``environment``: the variables
    that the same place sets. ``base``: the folder where the app lies there, or empty. ``remarks``: what else
    of that place is not taken over. ``laid``: the folder whose content lies at ``base``; empty: all.
    """

    source: str
    text: str
    environment: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    remarks: tuple[str, ...] = ()
    laid: str = ""


def written_commands(folder: Folder) -> list[Written]:
    """Return all commands that the folder's files have, the one that counts first."""
    return [
        *_of_procfile(folder.read),
        *(found for name in _DOCKERFILES for found in _of_dockerfile(folder.read, name)),
        *composed(folder.read, "."),
        *_of_units(folder),
        *_of_makefile(folder.read),
        *_of_main(folder.read),
    ]


def _of_procfile(read: Read) -> Iterator[Written]:
    found = _WEB.search(read("Procfile") or "")
    if found:
        yield Written("`web` in Procfile", found["command"])


# What people name the target that serves.
_RUNS = re.compile(r"^(?:run|serve|start|web)[ \t]*:[^=\n]*\n(?P<recipe>(?:\t.*\n?)+)", re.MULTILINE)
_MAIN = re.compile(r"""^if __name__ == ["']__main__["']""", re.MULTILINE)
_PORT_READ = re.compile(r"""(?:environ|getenv)\b[^\n]*["']PORT["']""")
_SCRIPTS = ("app.py", "main.py", "server.py", "run.py")


def _of_makefile(read: Read) -> Iterator[Written]:
    found = _RUNS.search(read("Makefile") or "")
    if found:
        lines = [line.strip().lstrip("@-") for line in found["recipe"].splitlines()]
        yield Written("Makefile", lines[-1].replace("$$", "$"))


def _of_main(read: Read) -> Iterator[Written]:
    """Yield scripts that serve when they are run, where `PORT` says: a fixed port cannot be replaced."""
    for name in _SCRIPTS:
        text = read(name) or ""
        if _MAIN.search(text) and _PORT_READ.search(text):
            yield Written(f"the end of {name}", f"python {name}")


# --- Dockerfile -------------------------------------------------------------------------------------------


def _of_dockerfile(read: Read, name: str) -> Iterator[Written]:
    """*Source*: Dockerfile reference: CMD, ENTRYPOINT, ENV, WORKDIR; of several stages the last is built."""
    stages: dict[str, list[tuple[str, str]]] = {}
    lines: list[tuple[str, str]] = []
    for keyword, rest in _instructions(read(name) or ""):
        if keyword == "FROM":
            origin, *more = [word for word in rest.split() if not word.startswith("--")] or [""]
            lines = list(stages.get(origin.lower(), ()))
            stages[more[-1].lower() if len(more) == 2 else str(len(stages))] = lines
        else:
            lines.append((keyword, rest))
    last = {keyword: rest for keyword, rest in lines if keyword in ("CMD", "ENTRYPOINT", "WORKDIR")}
    environment = {
        key: value for keyword, rest in lines if keyword == "ENV" for key, value in _assignments(rest)
    }
    entry, command = last.get("ENTRYPOINT", ""), last.get("CMD", "")
    # An ENTRYPOINT that a shell reads gets no CMD.
    text = " ".join(
        filter(None, (_as_text(entry), _as_text(command) if _exec_form(entry) or not entry else ""))
    )
    if text:
        kinds = " and ".join(kind for kind in ("ENTRYPOINT", "CMD") if last.get(kind))
        base = last.get("WORKDIR", "").strip()
        laid = _laid([rest for keyword, rest in lines if keyword in ("COPY", "ADD")], base)
        yield Written(f"`{kinds}` in {name}", text, environment, base, laid=laid)


def _laid(copies: Sequence[str], base: str) -> str:
    """Return the only folder whose content is laid at ``base``, beside files; empty: none, or all is.

    >>> _laid(["requirements.txt .", "--chown=1 ./src/ /srv"], "/srv"), _laid(["src .", ". ."], "/srv")
    ('src', '')
    """
    found = []
    for copied in copies:
        words = [word for word in _exec_form(copied) or copied.split() if not word.startswith("--")]
        if "--from" not in copied and words[-1].rstrip("/") in (".", base.rstrip("/")):
            found += [word.removeprefix("./").rstrip("/") for word in words[:-1]]
    folders = [one for one in found if "." not in one.rpartition("/")[2] or one == "."]
    return folders[0] if len(folders) == 1 and folders != ["."] else ""


def laid_below(folder: Folder) -> str:
    """Return the folder below this one that a Dockerfile runs alone; empty: there is none."""
    found = (one.laid for name in _DOCKERFILES for one in _of_dockerfile(folder.read, name))
    return next((laid for laid in found if folder.has(laid)), "")


def commands_for(read: Read, place: str) -> list[Written]:
    """Return the commands, by a Dockerfile or by Compose, for a folder ``place`` below theirs."""
    own = [one for name in _DOCKERFILES for one in _of_dockerfile(read, name) if one.laid == place]
    return [*own, *composed(read, place)]


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    kept = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\[ \t]*\n", " ", kept).splitlines():
        keyword, _, rest = line.strip().partition(" ")
        if keyword:
            yield keyword.upper(), rest.strip()


def _exec_form(written: str) -> Sequence[str] | None:
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return None
    return [str(word) for word in found] if isinstance(found, list) else None


def _as_text(written: str) -> str:
    words = _exec_form(written)
    return written if words is None else _joined(words)


def _joined(words: Sequence[str]) -> str:
    """Return words as one text. A command that a shell is given is read as that shell reads it."""
    if (
        len(words) == 3
        and words[0].rpartition("/")[2] in ("sh", "bash")
        and re.fullmatch(r"-[a-z]*c", words[1])
    ):
        return words[2]
    return shlex.join(words)


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield `NAME=value` of a line; of Docker's older form, `NAME value`, too."""
    try:
        words = shlex.split(text)
    except ValueError:
        return
    if words and "=" not in words[0]:
        words = [f"{words[0]}={' '.join(words[1:])}"]
    for word in words:
        name, equals, value = word.partition("=")
        if equals and _VARIABLE.fullmatch(name):
            yield name, value


# --- Compose ----------------------------------------------------------------------------------------------


def composed(read: Read, context: str) -> list[Written]:
    """Return the commands of the services that Compose builds from ``context``, a folder beside its file."""
    return [found for name in _COMPOSE for found in _of_compose(read, name, context)]


# Of repositories with several: documentation of npm, pnpm and Turborepo on workspaces; Compose's examples.
_HOLDERS = ("apps", "packages", "services")


def places_below(folder: Folder, but: Sequence[str]) -> list[str]:
    """Return the folders below this one that may have its app, but some: those that Compose builds first."""
    built = (_context(table.get("build")) for name in _COMPOSE for _, table in _services(folder.read, name))
    there = [name for name in folder.names("") if name not in but and not name.startswith(".")]
    deeper = [f"{name}/{one}" for name in there if name in _HOLDERS for one in folder.names(name)]
    return [place for place in dict.fromkeys([*built, *there, *deeper]) if place not in (".", *but)]


def only_place(found: Sequence[str]) -> str | None:
    """Return the only folder that was found; null without one.

    *Errors*: UsageError when there are several.
    """
    if len(found) > 1:
        raise UsageError(
            f"`--app .`: apps are in {', '.join(f'`{name}`' for name in found)}; expected the folder of one",
            hint=f"--dir {found[0]} --app .",
        )
    return next(iter(found), None)


def _services(read: Read, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    import yaml

    text = read(name)
    try:
        document = yaml_document(text, yaml.SafeLoader) if text else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    services = document.get("services") if isinstance(document, dict) else None
    for service, table in services.items() if isinstance(services, dict) else ():
        if isinstance(table, dict):
            yield str(service), table


def _of_compose(read: Read, name: str, context: str) -> Iterator[Written]:
    """*Source*: Compose specification, Services: command, entrypoint, environment, working_dir."""
    for service, table in _services(read, name):
        words = [found for key in ("entrypoint", "command") if (found := _command(table.get(key)))]
        if words and _context(table.get("build")) == context:
            asked = _names_of(table.get("environment"))
            yield Written(
                f"`command` of `{service}` in {name}"
                if table.get("command")
                else f"`entrypoint` of `{service}` in {name}",
                # Compose reads `$$` as one.
                " ".join(words).replace("$$", "$"),
                base=str(table.get("working_dir") or ""),
                remarks=(f"its variables, which are of its network: {', '.join(asked)}",) if asked else (),
            )


def _context(build: object) -> str:
    """Return the folder that a service is built from; one that has only an image gets the file's folder."""
    found = build.get("context") if isinstance(build, dict) else build
    return str(found or ".").removeprefix("./").rstrip("/") or "."


def _command(written: object) -> str:
    if isinstance(written, list):
        return _joined([str(word) for word in written])
    return " ".join(written.split()) if isinstance(written, str) else ""


def _names_of(environment: object) -> list[str]:
    names = environment if isinstance(environment, dict | list) else ()
    return [str(one).partition("=")[0] for one in names]


# --- systemd ----------------------------------------------------------------------------------------------


def _of_units(folder: Folder) -> Iterator[Written]:
    for place in _UNIT_FOLDERS:
        for file in folder.names(place):
            path = f"{place}/{file}" if place else file
            if file.endswith(".service"):
                yield from _of_unit(path, folder.read(path) or "")


def _of_unit(path: str, text: str) -> Iterator[Written]:
    """*Source*: systemd.service(5), systemd.exec(5), systemd.syntax(7): an empty value resets a list."""
    values: dict[str, list[str]] = {}
    for line in re.sub(r"\\[ \t]*\n", " ", text).splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith(("#", ";")):
            values[key.strip()] = [*values.get(key.strip(), []), value.strip()] if value.strip() else []
    started = values.get("ExecStart", [])
    files = [file.lstrip("-") for file in values.get("EnvironmentFile", [])]
    if started:
        yield Written(
            f"`ExecStart` in {path}",
            started[-1].lstrip(_UNIT_PREFIXES).replace("%%", "%"),
            dict(pair for line in values.get("Environment", []) for pair in _assignments(line)),
            (values.get("WorkingDirectory") or [""])[-1].lstrip("-"),
            tuple(f"the variables in `{file}`, which Prony does not read: --env-file FILE" for file in files),
        )

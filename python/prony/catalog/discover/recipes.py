"""Settings in the forms in which people keep them: a command, a configuration, a unit, a variable. Pure.

>>> recipe = recipe_of(Candidate("gunicorn", 4, 8), "shop:app", "wsgi")
>>> recipe.shell
'gunicorn --workers 4 --threads 8 shop:app'
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from posixpath import join
from types import MappingProxyType

from prony.catalog.discover.current import COUNTS, Current
from prony.catalog.discover.renumbered import renumbered
from prony.catalog.discover.servers import ROOTS, SERVERS
from prony.tune.space import Candidate

PORT = 8000
# In a container, and where a platform routes to it, loopback is reached by nobody.
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - written into what a person asks for, bound by nothing here
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a server is started: its program with what is always there, and the names of its options.
    ``worker_class``: of Gunicorn. ``variables``: of workers and threads; ``in_arguments``: the variable that
    holds options for which there is no other. ``factory``: the option that says that the app is one; `()`:
    a call without arguments stands in the app's place, `(...)`: any call; empty: neither. ``bind``: the words
    of an address, of a server that `SERVERS` has not.
    """

    program: tuple[str, ...]
    workers: str = ""
    threads: str = ""
    worker_class: str = ""
    variables: tuple[str, str] = ("", "")
    in_arguments: str = ""
    before_app: tuple[str, ...] = ()
    factory: str = ""
    bind: tuple[str, ...] = ()

    def app(self, target: str) -> tuple[str, ...] | None:
        """Return the words of an app, or of the call that makes it; None: it has no words for that."""
        name, is_call, rest = target.partition("(")
        if not is_call or self.factory == "(...)" or (self.factory == "()" and rest == ")"):
            return (*self.before_app, target)
        return (self.factory, name) if self.factory.startswith("--") and rest == ")" else None


def _gunicorn(worker_class: str = "", threads: str = "") -> _Dialect:
    """Return the dialect of Gunicorn with one of its classes."""
    return _Dialect(
        ("gunicorn",),
        "--workers",
        threads,
        worker_class,
        variables=("WEB_CONCURRENCY", ""),
        in_arguments="GUNICORN_CMD_ARGS",
        factory="(...)",
    )


# *Source*: gunicorn/util.py import_app; uvicorn/main.py and granian/cli.py --factory; waitress/runner.py
# --call; plugins/python/pyloader.c of uWSGI: `()`.
_DIALECTS: Mapping[str, _Dialect] = MappingProxyType(
    {
        "gunicorn": _gunicorn(threads="--threads"),
        "gunicorn-uvicorn": _gunicorn("uvicorn_worker.UvicornWorker"),
        "gunicorn-gevent": _gunicorn("gevent"),
        "granian": _Dialect(
            ("granian", "--interface", "{interface}"),
            "--workers",
            "--blocking-threads",
            variables=("GRANIAN_WORKERS", "GRANIAN_BLOCKING_THREADS"),
            factory="--factory",
        ),
        "uvicorn": _Dialect(
            ("uvicorn",), "--workers", variables=("WEB_CONCURRENCY", ""), factory="--factory"
        ),
        "hypercorn": _Dialect(("hypercorn",), "--workers"),
        "uwsgi": _Dialect(
            ("uwsgi", "--master", "--need-app"),
            "--processes",
            "--threads",
            variables=("UWSGI_PROCESSES", "UWSGI_THREADS"),
            before_app=("--wsgi",),
            factory="()",
        ),
        "waitress": _Dialect(("waitress-serve",), threads="--threads", factory="--call"),
        "cheroot": _Dialect(("cheroot",), threads="--threads"),
        "puma": _Dialect(("puma",), "--workers", "--threads", bind=("--bind", "tcp://{host}:{port}")),
    }
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start a server with chosen settings. ``bind``: the options of an address to listen on;
    ``is_deaf``: without them it listens nowhere. ``root``: the folder, in the app's, where imports begin.
    ``folder``: that of its program, as a unit names it. ``text``: today's command with other numbers, which
    stands in ``source``; empty: there is none. ``remarks``: what stands above a configuration, and variables.
    ``file``: path and changed lines of the file that has the numbers today, where one has: the only form.
    """

    command: tuple[str, ...]
    bind: tuple[str, ...]
    is_deaf: bool = False
    root: str = ""
    folder: str = ".venv/bin"
    variables: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, int | str] = field(default_factory=dict)
    text: str = ""
    source: str = ""
    remarks: tuple[str, str] = ("", "")
    file: tuple[str, str] | None = None

    @property
    def shell(self) -> str:
        """The command line, typed in the app's folder, without an address where the server has a default;
        over one of today that one, with its own.
        """
        if self.text:
            return self.text if "PYTHONPATH" in self.text else self._searching() + self.text
        words = self._bound(_LOOPBACK, str(PORT)) if self.is_deaf else self.command
        return self._searching() + shlex.join(words)

    def _bound(self, host: str, port: str) -> tuple[str, ...]:
        """Return the command with an address to listen on."""
        at = [part.format(host=host, port=port) for part in self.bind]
        return (self.command[0], *at, *self.command[1:])

    def _searching(self) -> str:
        return f"PYTHONPATH={shlex.quote(self.root)} " if self.root else ""

    def forms(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield each form with its name. ``folder``: the app's."""
        if self.file:
            yield self.file
            return
        if self.configuration:
            lines = (f"{key} = {json.dumps(value)}\n" for key, value in self.configuration.items())
            yield "gunicorn.conf.py", "".join((self.remarks[0], *lines))
        searched = f"ENV PYTHONPATH={json.dumps(self.root)}\n" if self.root else ""
        usual = {
            "Procfile": f"web: {self._searching()}{self._for_platform()}\n",
            "systemd": self._unit(folder),
            "Dockerfile": f"{searched}CMD {json.dumps(self._bound(_EVERYWHERE, str(PORT)))}\n",
        }
        yield from {**usual, **dict(_where_it_stands(self.source, self.text) if self.text else ())}.items()
        if self.variables:
            lines = (f"{name}={shlex.quote(value)}\n" for name, value in self.variables.items())
            yield "environment", "".join((self.remarks[1], *lines))

    def _for_platform(self) -> str:
        """Return the command with the platform's port, which a shell fills in."""

        def filled(part: str) -> str:
            text = part.format(host=_EVERYWHERE, port="$PORT")
            return text if "{port}" in part else shlex.quote(text)

        return " ".join((self.command[0], *map(filled, self.bind), shlex.join(self.command[1:])))

    def _unit(self, folder: str) -> str:
        program, *rest = self._bound(_LOOPBACK, str(PORT))
        # A program's path has no variables, and a dollar sign there is one.
        path = _in_unit(f"{join(folder, self.folder)}/{program}").replace("$$", "$")
        start = " ".join((path, *map(_in_unit, rest)))
        # Of a variable's value only percent signs are filled in.
        there = json.dumps(f"PYTHONPATH={folder.rstrip('/')}/{self.root}", ensure_ascii=False)
        searched = f"Environment={there.replace('%', '%%')}\n" if self.root else ""
        return f"[Service]\nWorkingDirectory={folder.replace('%', '%%')}\n{searched}ExecStart={start}\n"


def _where_it_stands(source: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the form in which a command of today stands, with its new ``text``: what else stands there stays.

    *Source*: systemd.service(5): an empty `ExecStart=` takes back what was said; Dockerfile reference.
    """
    if source == "`web` in Procfile":
        yield "Procfile", f"web: {text}\n"
    elif source.startswith("`ExecStart` in ") and text.startswith("/") and not set(";&|<>`") & set(text):
        # What a shell was given in the unit has no whole path, or signs that the unit does not know.
        escaped = text.replace("%", "%%")
        kept = "# for `systemctl edit`: all else of the unit stays\n"
        yield "systemd", f"{kept}[Service]\nExecStart=\nExecStart={escaped}\n"
    elif source.startswith(("`CMD` in ", "`ENTRYPOINT")):
        # Its words are those of both.
        begun = "ENTRYPOINT []\n" if source.startswith("`ENTRYPOINT") else ""
        words = shlex.split(text)
        written = json.dumps(words) if shlex.join(words) == text else text
        yield "Dockerfile", f"{begun}CMD {written}\n"


def _in_unit(word: str) -> str:
    """Return a word as systemd reads it: its percent and dollar signs stand for themselves."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return word if re.fullmatch(r"[\w@+=:,./-]+", word) else f'"{escaped}"'


def recipe_of(
    one: Candidate, target: str, interface: str, root: str = "", today: Current | None = None
) -> Recipe | None:
    """Return how to start a candidate; None for a server whose options are known to the catalogue alone.

    ``target``: the app, or the call that makes it; ``root``: the folder, in the app's, where its imports
    begin. ``today``: the command that starts the same server today, whose other options stay.
    """
    dialect = _DIALECTS.get(one.server)
    app = dialect.app(target) if dialect else None
    if dialect is None or app is None:
        return None
    numbers = [(dialect.workers, one.workers), (dialect.threads, one.threads)]
    counts = {name: value for name, value in numbers if name and value is not None}
    if today and today.file:
        return _in_file(counts, today)
    program, *usual = (part.format(interface=interface) for part in dialect.program)
    usual += ["--worker-class", dialect.worker_class] if dialect.worker_class else []
    kept = [(name, words) for name, words in (today.kept if today else ()) if name not in COUNTS]
    names = {name for name, _ in kept}
    others = [word for _, words in kept for word in words] if today else usual
    root = "" if names & set(ROOTS) else root
    numbered = (word for name in counts for word in (name, _written(program, name, counts[name])))
    # What was taken from around it in another folder is in its words alone.
    is_there = today is not None and program in SERVERS and (today.is_whole or not root)
    text = renumbered(program, today.text, counts) if today and is_there else None
    # uWSGI's address is one of several kinds of socket, so that none is read as its own.
    usual_bind = dialect.bind or SERVERS[program].bind
    return Recipe(
        command=(program, *others, *numbered, *app),
        bind=today.bind if today else usual_bind or ("--http11-socket", "{host}:{port}"),
        is_deaf=not usual_bind,
        root=root,
        folder="/usr/bin" if program == "puma" else ".venv/bin",
        variables={
            **({"PYTHONPATH": root} if root else {}),
            **_variables(dialect, counts, "" if today else dialect.worker_class, today),
        },
        configuration=_configuration(
            counts, today.options.get("--worker-class", "") if today else dialect.worker_class, root
        )
        if program == "gunicorn" and names <= _IN_CONFIGURATION
        else {},
        text=text or "",
        source=today.source if today and today.is_whole else "",
        remarks=_remarks(dialect, counts, today) if today else ("", ""),
    )


# *Source*: uWSGI documentation, Configuring uWSGI.
_LINES = {"ini": "{} = {}", "json": '"{}": {},', "xml": "<{0}>{1}</{0}>"}


def _in_file(counts: Mapping[str, int], today: Current) -> Recipe:
    """Return the command of today as it is, with the lines of its file that have the numbers."""
    path = today.file
    kind = path.rpartition(".")[2]
    keys = {today.keys.get(name, name.strip("-")): value for name, value in counts.items()}
    lines = [_LINES.get(kind, "  {}: {}").format(key, value) for key, value in keys.items()]
    stay = [] if kind in ("json", "xml") else [f"# other lines of {path} stay"]
    said = ", ".join(f"{key} = {value}" for key, value in keys.items())
    return Recipe(
        command=(),
        bind=(),
        text=f"{today.text}  # with {said} in {path}",
        file=(path, "".join(f"{line}\n" for line in (*stay, *lines))),
    )


def _written(program: str, option: str, count: int) -> str:
    """Return a number as its program takes it: of Puma's threads the least and the most, and one worker is
    its main process.
    """
    if program != "puma":
        return str(count)
    return f"{count}:{count}" if option == "--threads" else str(count if count > 1 else 0)


# What else a command of Gunicorn may say for a configuration to say the same.
_IN_CONFIGURATION = {"--config", "--worker-class"}


def _configuration(counts: Mapping[str, int], worker_class: str, root: str) -> dict[str, int | str]:
    words = {"worker_class": worker_class, "pythonpath": root}
    return {
        **{name.strip("-"): value for name, value in counts.items()},
        **{name: word for name, word in words.items() if word},
    }


def _remarks(dialect: _Dialect, counts: Mapping[str, int], today: Current) -> tuple[str, str]:
    """Return what stands above the lines of a configuration, and above variables: what else is read there,
    and what wins over them.
    """
    taken = {name for name, _ in today.kept}
    typed = [name for name in counts if name in taken]
    wins = f"# without {' and '.join(typed)} in the command, which would win\n" if typed else ""
    path = today.options.get("--config", "gunicorn.conf.py")
    variables = dict(zip((dialect.workers, dialect.threads), dialect.variables, strict=True))
    filed = [name for name in counts if name in today.options.keys() - today.by_variable.keys()]
    is_filed = any(variables[name] for name in filed) and dialect.in_arguments not in today.environment
    unless = f"# unless {path} says otherwise\n" if is_filed else ""
    return f"# other lines of {path} stay\n{wins}", wins or unless


def _variables(
    dialect: _Dialect, counts: Mapping[str, int], worker_class: str, today: Current | None
) -> dict[str, str]:
    usual = dict(zip((dialect.workers, dialect.threads), dialect.variables, strict=True))
    variables = {**usual, **(today.by_variable if today else {})}
    found = {variables[name]: str(value) for name, value in counts.items() if variables[name]}
    rest = {name: value for name, value in counts.items() if not variables[name]}
    before = today.environment.get(dialect.in_arguments) if today else None
    if not dialect.in_arguments or not (rest or worker_class or before):
        return found
    said = ["--worker-class", worker_class] if worker_class else []
    arguments = shlex.join((*said, *(word for name, value in rest.items() for word in (name, str(value)))))
    if before:
        # What it says of the numbers wins over the other variable.
        program = dialect.program[0]
        arguments = (renumbered(program, f"{program} {before}", counts) or "").partition(" ")[2]
    return {**found, dialect.in_arguments: arguments}

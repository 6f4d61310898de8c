"""Settings in the forms in which people keep them: a command, a configuration, a unit, a variable. Pure.

>>> recipe = recipe_of(Candidate("gunicorn", 4, 8), "shop:app", "wsgi")
>>> recipe.shell
'gunicorn --workers 4 --threads 8 shop:app'
"""

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from prony.catalog.discover.servers import SERVERS
from prony.tune.space import Candidate

PORT = 8000
# In a container, and where a platform routes to it, loopback is reached by nobody.
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - written into what a person asks for, bound by nothing here


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a server is started: its program with what is always there, and the names of its options.
    ``variables``: of workers and threads; ``in_arguments``: the variable that holds options for which there
    is no other.
    """

    program: tuple[str, ...]
    workers: str = ""
    threads: str = ""
    variables: tuple[str, str] = ("", "")
    in_arguments: str = ""
    configuration: bool = False
    before_app: tuple[str, ...] = ()


def _gunicorn(*words: str, threads: str = "") -> _Dialect:
    """Return the dialect of Gunicorn with one of its classes."""
    return _Dialect(
        ("gunicorn", *words),
        "--workers",
        threads,
        variables=("WEB_CONCURRENCY", ""),
        in_arguments="GUNICORN_CMD_ARGS",
        configuration=True,
    )


_DIALECTS: Mapping[str, _Dialect] = MappingProxyType(
    {
        "gunicorn": _gunicorn(threads="--threads"),
        "gunicorn-uvicorn": _gunicorn("--worker-class", "uvicorn_worker.UvicornWorker"),
        "gunicorn-gevent": _gunicorn("--worker-class", "gevent"),
        "granian": _Dialect(
            ("granian", "--interface", "{interface}"),
            "--workers",
            "--blocking-threads",
            variables=("GRANIAN_WORKERS", "GRANIAN_BLOCKING_THREADS"),
        ),
        "uvicorn": _Dialect(("uvicorn",), "--workers", variables=("WEB_CONCURRENCY", "")),
        "hypercorn": _Dialect(("hypercorn",), "--workers"),
        "uwsgi": _Dialect(
            ("uwsgi", "--master", "--need-app"),
            "--processes",
            "--threads",
            variables=("UWSGI_PROCESSES", "UWSGI_THREADS"),
            before_app=("--wsgi",),
        ),
        "waitress": _Dialect(("waitress-serve",), threads="--threads"),
        "cheroot": _Dialect(("cheroot",), threads="--threads"),
    }
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start a server with chosen settings. ``bind``: the options of an address to listen on."""

    command: tuple[str, ...]
    bind: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, int] = field(default_factory=dict)

    @property
    def shell(self) -> str:
        """The command line, without an address: the server's own default."""
        return shlex.join(self.command)

    def bound(self, host: str, port: str) -> tuple[str, ...]:
        """Return the command with an address to listen on."""
        at = [part.format(host=host, port=port) for part in self.bind]
        return (self.command[0], *at, *self.command[1:])

    def forms(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield each form with its name. ``folder``: the app's."""
        if self.configuration:
            lines = (f"{key} = {value}\n" for key, value in self.configuration.items())
            yield "gunicorn.conf.py", "".join(lines)
        yield "Procfile", f"web: {shlex.join(self.bound(_EVERYWHERE, 'PORT')).replace('PORT', '$PORT')}\n"
        yield "systemd", self._unit(folder)
        yield "Dockerfile", f"CMD {json.dumps(self.bound(_EVERYWHERE, str(PORT)))}\n"
        if self.variables:
            lines = (f"{name}={shlex.quote(value)}\n" for name, value in self.variables.items())
            yield "environment", "".join(lines)

    def _unit(self, folder: str) -> str:
        program, *rest = self.bound("127.0.0.1", str(PORT))
        start = " ".join(map(_in_unit, (f"{folder.rstrip('/')}/.venv/bin/{program}", *rest)))
        return f"[Service]\nWorkingDirectory={folder.replace('%', '%%')}\nExecStart={start}\n"


def _in_unit(word: str) -> str:
    """Return a word as systemd reads it: its percent and dollar signs stand for themselves."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"' if escaped != word or " " in word else word


def recipe_of(one: Candidate, target: str, interface: str) -> Recipe | None:
    """Return how to start a candidate; None for a server whose options are known to the catalogue alone."""
    dialect = _DIALECTS.get(one.server)
    if dialect is None:
        return None
    numbers = [(dialect.workers, one.workers), (dialect.threads, one.threads)]
    set_ones = {name: value for name, value in numbers if name and value is not None}
    options = [word for name, value in set_ones.items() for word in (name, str(value))]
    program, *fixed = (part.format(interface=interface) for part in dialect.program)
    return Recipe(
        command=(program, *fixed, *options, *dialect.before_app, target),
        # uWSGI's address is one of several kinds of socket, so that none is read as its own.
        bind=SERVERS[program].bind or ("--http11-socket", "{host}:{port}"),
        variables=_variables(dialect, one),
        configuration={name.strip("-"): value for name, value in set_ones.items()}
        if dialect.configuration
        else {},
    )


def _variables(dialect: _Dialect, one: Candidate) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, option, value in zip(
        dialect.variables, (dialect.workers, dialect.threads), (one.workers, one.threads), strict=True
    ):
        if value is None or not option:
            continue
        if name:
            found[name] = str(value)
        elif dialect.in_arguments:
            found[dialect.in_arguments] = f"{option} {value}"
    return found

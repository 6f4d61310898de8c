"""A user's own app as a plan: what the options of ``prony run --app`` mean."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import UsageError
from prony.model import App, Arrivals, Check, Contract, Interface, Plan, Request

if TYPE_CHECKING:
    from prony.catalog.loader import Catalog
    from prony.plan import PlanOptions, StudyDocument

__all__ = ["OwnApp", "plan_of_app", "variables"]


@dataclass(frozen=True, slots=True)
class OwnApp:
    """The options that describe a user's own app and its load."""

    app: str
    interface: Interface
    folder: Path
    servers: tuple[str, ...]
    connections: tuple[int, ...] | None
    rate: float | None
    arrivals: Arrivals
    duration_ns: int
    warmup_ns: int
    timeout_ns: int
    repeats: int
    request: Request
    expect_status: int | None
    expect_body: bytes | None
    environment: dict[str, str]


def plan_of_app(wish: OwnApp, known: "Catalog", options: "PlanOptions") -> Plan:
    """Return the plan of one app on several servers.

    *Errors*: UsageError when app or servers are not there, or do not fit.
    """
    from prony.catalog.loader import with_app
    from prony.plan import make_plan

    app = _app(wish)
    view = with_app(known, app)
    # What the user wrote is the command line: it is kept verbatim, as a study's file is, but for secrets.
    text = shlex.join(["prony", *_without_values(sys.argv[1:])])
    return make_plan(
        _document(wish, app.name), text, view, replace(options, request=wish.request, profile=None)
    )


def _app(wish: OwnApp) -> App:
    from prony.catalog.apps import user_app

    expected = wish.expect_status is not None or wish.expect_body is not None
    checks = (Check(wish.request, wish.expect_status, wish.expect_body),) if expected else ()
    return user_app(
        wish.app, wish.folder, wish.interface, contract=Contract(checks), environment=wish.environment
    )


def _document(wish: OwnApp, app_name: str) -> "StudyDocument":
    from prony.plan import ProfileDocument, StudyDocument, SubjectDocument, WorkloadDocument

    open_loop = wish.rate is not None
    load = WorkloadDocument(
        loop="open" if open_loop else "closed",
        rate=(wish.rate,) if wish.rate is not None else None,
        connections=wish.connections or (None if open_loop else (10,)),
        arrivals=wish.arrivals,
    )
    profile = ProfileDocument(
        blocks=wish.repeats, duration=wish.duration_ns, warmup=wish.warmup_ns, timeout=wish.timeout_ns
    )
    return StudyDocument(
        name=re.sub(r"[^a-z0-9]+", "-", app_name.lower()).strip("-") or "app",
        title=f"{wish.app} on {len(wish.servers)} server{'s' if len(wish.servers) != 1 else ''}",
        question=f"Which server runs {wish.app} best?",
        subjects=(SubjectDocument(server=wish.servers, app=(app_name,), interface=wish.interface),),
        workloads=(load,),
        profiles={"custom": profile},
    )


def variables(pairs: Sequence[str], file: Path | None) -> dict[str, str]:
    """Return the app's variables: those of ``--env-file``, then those of ``--env``, which win.

    *Errors*: UsageError for what is no variable, or one that is not set here.
    """
    found: dict[str, str] = {}
    for text in [*_lines(file), *pairs]:
        name, equals, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"`--env {name}`: expected a variable's name, or `NAME=value`")
        if not equals and name not in os.environ:
            raise UsageError(f"`--env {name}`: no such variable is set here; expected `{name}=value`")
        found[name] = value if equals else os.environ[name]
    return found


def _without_values(arguments: Sequence[str]) -> list[str]:
    """Return a command line with the values of ``--env`` left out.

    >>> _without_values(["run", "--env", "TOKEN=x", "--env=A=b", "-c", "10"])
    ['run', '--env', 'TOKEN=...', '--env=A=...', '-c', '10']
    """
    shown: list[str] = []
    for argument in arguments:
        follows = bool(shown) and shown[-1] == "--env"
        prefix = "" if follows else "--env="
        if (follows or argument.startswith("--env=")) and "=" in argument.removeprefix(prefix):
            name = argument.removeprefix(prefix).partition("=")[0]
            shown.append(f"{prefix}{name}=...")
        else:
            shown.append(argument)
    return shown


def _lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"`--env-file {file}`: cannot read it: {error}") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]

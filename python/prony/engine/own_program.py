"""A load generator of the user's own: any program that loads the address that it is given.

It may print what it counted, as JSON; else the reference server under its load counts.

>>> own_tool(EngineChoice("my-load", command="./my_load.py {url}")).abilities.open
False

The environment of the load scripts, locked like those of the servers, and its interpreter.

>>> entry().name
'python-scripts'
"""

import hashlib
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from re import findall

from prony.catalog.install.environment import Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import prepare
from prony.catalog.schema.entry import ProcessEntry
from prony.catalog.schema.loader import load_generator
from prony.core.errors import EngineError, UsageError
from prony.core.lines import json_object
from prony.core.metrics import PERCENTILES
from prony.core.units import MILLISECOND_NS, SECOND_NS, seconds
from prony.core.users import RunAs, resolve_user
from prony.engine.external.engine import InstalledTool
from prony.engine.external.replies import number_in
from prony.engine.external.tool import Abilities, Job, Measured, Order, Output, Reported, Tool
from prony.model.json_codec import Json
from prony.model.workload import EngineChoice, OpenLoop

_PLACES = ("url", "host", "port", "path", "connections", "threads", "rate", "requests", "duration", "python")
_HOW = (
    'it may print {"ok": COUNT, "failed": COUNT, "seconds": LENGTH} as the last line of its output, or load '
    "the reference server, which counts"
)


def check_command(text: str) -> None:
    """Refuse what is no command of a generator.

    *Errors*: UsageError with the placeholders that there are.
    """
    words = _words(text)
    unknown = sorted({name for word in words for name in findall(r"\{(\w*)\}", word)} - set(_PLACES))
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in _PLACES)
        raise UsageError(f"`--engine {text}`: found `{{{unknown[0]}}}`; expected one of {known}")
    if not words:
        raise UsageError("`--engine`: expected a generator's name, or a command such as './my_load.py {url}'")


def own_tool(choice: EngineChoice) -> Tool:
    """Return the program as a tool: it can send the loads of which its command has the numbers."""
    has = choice.command.__contains__
    return Tool(
        name=choice.name,
        title=choice.command,
        get="name a program that exists, relative to the folder in which Prony is started",
        ask_version=(),
        abilities=Abilities(open=has("{rate}"), count=has("{requests}"), bodies=False, reports_status=False),
        order=lambda job: Order((_command(choice.command, job),)),
        parse=lambda output, job: _parse(choice.name, output, job),
        caveats=(f"{choice.name} is a program of yours: Prony gives it the address, and sets no header",),
        ends=has("{duration}") or has("{requests}"),
    )


def find_own(choice: EngineChoice) -> InstalledTool:
    """Return the program, with the digest of its file as its version.

    *Errors*: EngineError when it is not there, or the user that sends the load cannot run it.
    """
    words = _words(choice.command)
    by_python = words[0] == "{python}"
    script = _absolute(words[1] if by_python and len(words) > 1 else words[0])
    if not script.is_file():
        raise EngineError(f"there is no program `{script}`", hint=own_tool(choice).get)
    if not by_python and not os.access(script, os.X_OK):
        raise EngineError(f"`{script}` is no program", hint=f"chmod +x {shlex.quote(str(script))}")
    _check_open(script)
    digest = hashlib.sha256(script.read_bytes()).hexdigest()[:12]
    program = str(environment().python) if by_python else str(script)
    return InstalledTool(program, f"sha256 {digest}")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"`--engine {text}`: {error}") from None


def _absolute(word: str) -> Path:
    return Path(word).expanduser().absolute()


def _check_open(script: Path) -> None:
    """Refuse a program that another user cannot read, where Prony is root: the load is sent by one.

    *Errors*: EngineError naming what is closed.
    """
    places = ((script, stat.S_IROTH), *((parent, stat.S_IXOTH) for parent in script.resolve().parents))
    closed = next((path for path, needed in places if not path.stat().st_mode & needed), None)
    if os.geteuid() == 0 and closed is not None:
        raise EngineError(
            f"the load is sent by a user of its own, who cannot reach `{script}` (`{closed}` is closed)",
            hint="move it to a folder that every user can read, such as one below /srv or /opt",
        )


def _command(text: str, job: Job) -> tuple[str, ...]:
    """Return the words of one run; paths are absolute, because a generator works in a folder of its own."""
    load, loop = job.workload, job.workload.loop
    values = {
        "url": job.url,
        "host": job.address.host,
        "port": str(job.address.port),
        "path": load.request.path,
        "connections": str(job.connections),
        "threads": str(job.threads),
        "rate": f"{loop.rate_per_s:g}" if isinstance(loop, OpenLoop) else "",
        "requests": str(job.requests or ""),
        "duration": f"{seconds(job.duration_ns or 0):g}",
        "python": job.program,
    }
    words = _words(text)
    start = 1 if words[0] == "{python}" else 0
    words[start : start + 1] = [str(_absolute(words[start]))] if len(words) > start else []
    return tuple(_filled(word, values) for word in words)


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


# --- what it counted --------------------------------------------------------------------------------------


def _parse(name: str, output: Output, job: Job) -> Measured:
    told = _last_object(output.stdout.splitlines())
    if told is not None:
        return _of_json(told, output)
    if output.counted is None:
        raise EngineError(f"it printed no counts; {_HOW}")
    errors = output.counted.get("responses_error_status", 0)
    return Measured(
        duration_ns=output.length_ns,
        ok=max(0, output.counted.get("responses_complete", 0) - errors),
        bad_status={"503": errors} if errors else {},
        caveats=(f"{name} prints no counts: the reference server counted its replies",),
    )


def _last_object(lines: Sequence[str]) -> Json | None:
    """Return the last line that is an object with counts."""
    for line in reversed(lines):
        if line.lstrip().startswith("{"):
            try:
                told = json_object(line)
            except ValueError:
                continue
            if "ok" in told:
                return told
    return None


def _of_json(told: Json, output: Output) -> Measured:
    ok, failed = _count(told["ok"], "ok"), _count(told.get("failed", 0), "failed")
    length_s = told.get("seconds")
    length_ns = output.length_ns if length_s is None else _nanoseconds(length_s, "seconds", SECOND_NS)
    if not length_ns:
        raise EngineError(f"`seconds` is {length_s}; expected more than 0")
    return Measured(
        duration_ns=length_ns,
        ok=ok,
        failed={"unspecified": failed} if failed else {},
        latency=_latency(told.get("latency_ms"), ok),
    )


def _latency(told: object, count: int) -> Reported | None:
    """Return percentiles by name, and ``min``, ``mean`` and ``max``; None when nothing was printed."""
    if not isinstance(told, dict):
        return None
    known = {
        str(name): _nanoseconds(value, f"latency_ms.{name}", MILLISECOND_NS) for name, value in told.items()
    }
    return Reported(
        population="ok",
        count=count,
        min_ns=known.get("min"),
        mean_ns=known.get("mean"),
        max_ns=known.get("max"),
        percentiles={name: known[name] for name in PERCENTILES.values() if name in known},
    )


def _count(value: object, name: str) -> int:
    count = number_in(value, f"`{name}`")
    if count != int(count):
        raise EngineError(f"`{name}` is {count}; expected a whole number")
    return int(count)


def _nanoseconds(value: object, name: str, unit_ns: int) -> int:
    return round(number_in(value, f"`{name}`") * unit_ns)


# --- the interpreter of scripts ---------------------------------------------------------------------------


def entry() -> ProcessEntry:
    """Return what the scripts need, as an entry of the catalogue."""
    return load_generator("python-scripts")


def environment() -> Environment:
    """Return the scripts' environment; build it if it is not in the cache. Called once in a run of Prony.

    *Errors*: EngineError when it is unavailable; HostError as `prony.catalog.install.environment.prepare`.
    """
    return _prepared(resolve_user())


@cache
def _prepared(user: RunAs) -> Environment:
    request = EnvironmentRequest("python-scripts", entry())
    found = prepare((request,), user, lambda _progress: None)[request.key]
    if isinstance(found, Unavailable):
        raise EngineError(f"the Python load scripts cannot be installed: {found.reason}")
    return found


def find_script(tool: Tool) -> InstalledTool:
    """Return the interpreter of the scripts' environment, with the version of the package that it uses.

    *Errors*: EngineError when the environment is unavailable.
    """
    found = environment()
    package = "aiohttp" if "asyncio" in tool.name else "requests"
    return InstalledTool(str(found.python), f"{package} {found.packages.get(package)} on {found.interpreter}")

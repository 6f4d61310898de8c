"""From the options of a user's own app and its load to their meaning."""

from typing import TYPE_CHECKING

from prony.cli.options import (
    connections_of,
    duration_of,
    make_request,
    optional,
    rate_of,
    wait_of,
)
from prony.cli.paths import expected_of, paths_of
from prony.cli.run_options import LoadOptions, RunOptions
from prony.cli.variables import typed_line, variables
from prony.errors import UsageError
from prony.units import SECOND_NS

if TYPE_CHECKING:
    from prony.catalog.schema.loader import Catalog
    from prony.model.exchange import Request
    from prony.study.own_app import OwnApp
    from prony.survey.sources import Program
    from prony.survey.survey import Survey

_REPEATS = 5
_DURATION_NS, _WARMUP_NS = 10 * SECOND_NS, 3 * SECOND_NS
_OF_REQUEST = ("path", "method", "header", "body")


def own_app(
    options: RunOptions, known: "Catalog", found: "Survey | None", program: "Program | None"
) -> "OwnApp":
    """Return the app and its load; ``found``: what the app's folder says, null for a built-in one.
    ``program``: what the folder has instead.

    *Errors*: UsageError for the first invalid value.
    """
    from prony.model.exchange import Request
    from prony.study.own_app import OwnApp

    own, load, paths = options.own, options.load, paths_of(options.load.path or ("/",))
    request = _request(options, known, paths[0].path)
    return OwnApp(
        text=typed_line(),
        app=own.app if program is None else None,
        found=found,
        program=program,
        commands=tuple(own.commands or ()),
        interface=own.interface,
        folder=own.folder,
        servers=_servers(own.servers),
        connections=_connections(load),
        streams=load.streams or 1,
        rate=optional(rate_of, "--rate", load.rate),
        arrivals=load.arrivals,
        duration_ns=optional(duration_of, "--duration", load.duration) or _DURATION_NS,
        warmup_ns=_WARMUP_NS if load.warmup is None else wait_of("--warmup", load.warmup),
        timeout_ns=duration_of("--timeout", load.timeout),
        repeats=options.sure.repeats or _REPEATS,
        request=request,
        paths=paths if len(paths) > 1 else (),
        expected=expected_of(options.check, request or Request()),
        environment=variables(own.env or (), own.env_file),
    )


def _request(options: RunOptions, known: "Catalog", path: str) -> "Request | None":
    """Return the request; for a built-in app, unless the user names one, the first of its contract."""
    load = options.load
    made = make_request(load.method, path, load.header or (), load.body, keep_alive=True)
    said = any(name in options.typed for name in _OF_REQUEST)
    return None if options.own.app in known.apps and not said else made


def _servers(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageError(f"`--servers {text}`: expected one or more servers, such as `gunicorn,waitress`")
    return tuple(dict.fromkeys(names))


def _connections(load: LoadOptions) -> tuple[int, ...] | None:
    counts = optional(connections_of, "-c", load.connections)
    if load.rate is not None and counts is not None and len(counts) > 1:
        raise UsageError(
            f"`-c {load.connections}`: with `--rate`, connections are only a limit; expected one count",
            hint="leave out `--rate` for a closed loop with several numbers of connections",
        )
    return counts

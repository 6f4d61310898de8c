"""From the options of a user's own app and its load to their meaning."""

from typing import TYPE_CHECKING

from prony.cli.options import connections_of, duration_of, optional, rate_of, wait_of
from prony.cli.request_files import expected_of, paths_of, request_of, user_groups
from prony.cli.run_options import LoadOptions, RunOptions
from prony.cli.variables import typed_line, variables
from prony.core.errors import UsageError
from prony.core.units import SECOND_NS
from prony.model.workload import Pacing

if TYPE_CHECKING:
    from prony.catalog.discover.sources import Program
    from prony.catalog.discover.survey import Survey
    from prony.catalog.schema.loader import Catalog
    from prony.model.exchange import Request
    from prony.model.workload import MixPath
    from prony.plan.document import WorkloadDocument
    from prony.study.own_app import OwnApp

_REPEATS = 5
_DURATION_NS, _WARMUP_NS = 10 * SECOND_NS, 3 * SECOND_NS
_OF_REQUEST = ("path", "method", "header", "body", "form")


def own_app(
    options: RunOptions, known: "Catalog", found: "Survey | None", program: "Program | None"
) -> "OwnApp":
    """Return the app and its load; ``found``: what the app's folder says, None for a built-in one.
    ``program``: what the folder has instead.

    *Errors*: UsageError for the first invalid value.
    """
    from prony.model.exchange import Request
    from prony.study.own_app import OwnApp

    own, paths = options.own, paths_of(options.ask.path or ("/",))
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
        load=_load(options, paths),
        repeats=options.sure.repeats or _REPEATS,
        request=request,
        expected=expected_of(options.check, request or Request()),
        environment=variables(own.env or (), own.env_file),
    )


def _load(options: RunOptions, paths: "tuple[MixPath, ...]") -> "WorkloadDocument":
    """Return the load as a study's file would say it."""
    from prony.plan.document import PathDocument, WorkloadDocument

    load, ask = options.load, options.ask
    rate, connections = optional(rate_of, "--rate", load.rate), _connections(load)
    if ask.groups is not None and load.pacing is Pacing.PRECISE:
        raise UsageError(
            "`--pacing precise` does not work with `--groups`: each group has a thread, and they would wait "
            "for one another's CPU",
            hint="leave out --pacing",
        )
    return WorkloadDocument(
        loop="closed" if rate is None else "open",
        rate=None if rate is None else (rate,),
        connections=connections or ((10,) if rate is None else None),
        streams=(load.streams or 1,),
        arrivals=load.arrivals,
        duration=optional(duration_of, "--duration", load.duration) or _DURATION_NS,
        warmup=_WARMUP_NS if load.warmup is None else wait_of("--warmup", load.warmup),
        timeout=duration_of("--timeout", load.timeout),
        paths=tuple(PathDocument(path=one.path, weight=one.weight) for one in paths) if ask.is_mix else (),
        keep_alive=ask.keep_alive is not False,
        connection_requests=ask.requests_per_connection,
        connection_age=optional(duration_of, "--connection-age", ask.connection_age),
        follow=ask.follow,
        groups=None if ask.groups is None else user_groups(ask.groups),
    )


def _request(options: RunOptions, known: "Catalog", path: str) -> "Request | None":
    """Return the request; for a built-in app, unless the user names one, the first of its contract."""
    made = request_of(options.ask, path)
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

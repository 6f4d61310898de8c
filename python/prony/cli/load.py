"""``prony load``: the engine on its own."""

import json
import os
import re
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar
from urllib.parse import SplitResult, urlsplit

import typer

from prony.cli.allowed_hosts import address_of, is_loopback
from prony.cli.applicable import given, refuse_closed_loop_options
from prony.cli.flat import flattened
from prony.cli.options import (
    MAX_SEED,
    MAX_THREADS,
    check_output,
    connections_of,
    duration_of,
    make_request,
    optional,
    rate_of,
    wait_of,
    write_output,
)
from prony.cli.pacing_option import PacingOption, PacingWish, pacing_of
from prony.cli.request_options import Body, ExpectStatus, Header, Method, RequestTimeout
from prony.errors import ExitCode, UsageError
from prony.model import (
    Address,
    Arrivals,
    ClosedLoop,
    CountStop,
    DurationStop,
    EngineChoice,
    Loop,
    OpenLoop,
    Pacing,
    Recording,
    Workload,
)

__all__ = ["EPILOG", "load"]

# The engine's largest count; a day at its highest rate has fewer requests.
MAX_REQUESTS = 10**15

EPILOG = """\
Examples:

  prony load http://127.0.0.1:8000/ -c 100 -d 30s             closed loop, 100 connections

  prony load http://127.0.0.1:8000/ --rate 550 -d 3m          open loop: latency from the intended time

  prony load http://127.0.0.1:8000/ -n 10000 -c 50            exactly 10,000 requests

  prony load http://127.0.0.1:8000/ --rate 200 -m POST -H 'Content-Type: text/plain' --body @order.txt

  prony load http://127.0.0.1:8000/ -c 10 --json -            the result as JSON (docs/reference/load-json.md)
"""


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The request, and what counts as a success."""

    PANEL: ClassVar[str] = "Requests"

    method: Method = "GET"
    header: Header = None
    body: Body = None
    keep_alive: Annotated[
        bool,
        typer.Option("--keepalive/--no-keepalive", help="Keep connections, or open one for each request."),
    ] = True
    expect_status: ExpectStatus = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Allow load on this host, which is not this machine; may be repeated."),
    ] = None


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """The size and the length of the load."""

    PANEL: ClassVar[str] = "Load"

    connections: Annotated[
        str | None,
        typer.Option(
            "-c",
            "--connections",
            help="Closed loop: this many connections (10). Open loop: at most this many (1024).",
        ),
    ] = None
    rate: Annotated[
        str | None,
        typer.Option("--rate", "-r", help="Open loop: requests per second, however slow the server is."),
    ] = None
    arrivals: Annotated[
        Arrivals, typer.Option(help="Open loop: evenly spaced, or at random as independent users arrive.")
    ] = Arrivals.CONSTANT
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of random arrivals.")] = 1
    requests: Annotated[
        int | None,
        typer.Option(
            "-n", "--requests", min=1, max=MAX_REQUESTS, help="Stop after exactly this many requests."
        ),
    ] = None
    duration: Annotated[str | None, typer.Option("-d", "--duration", help="Length of the window (10s).")] = (
        None
    )
    warmup: Annotated[
        str | None, typer.Option(help="The same load before the window, not recorded (0s).")
    ] = None
    timeout: RequestTimeout = "10s"
    grace: Annotated[
        str | None, typer.Option(help="How long to wait for replies after the window (as --timeout).")
    ] = None
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help="Worker threads (half the CPUs).")
    ] = None
    pacing: PacingOption = None


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Output files."""

    PANEL: ClassVar[str] = "Output"

    json_to: Annotated[
        str | None,
        typer.Option("--json", help="Write the result as JSON to this file; - is standard output."),
    ] = None


@flattened
def load(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="What to load, such as http://127.0.0.1:8000/path.")],
    pace: PaceOptions,
    request: RequestOptions,
    output: ResultOptions,
) -> int:
    """Load one address: closed loop, open loop or a fixed count, with an account of every request."""
    refuse_closed_loop_options(given(context))
    check_output(output.json_to)
    parts = _target(url)
    address = address_of(parts.hostname or "", parts.port or 80, request.allow_host or ())
    pacing = _pacing(pace.pacing)
    engine = EngineChoice(threads=pace.threads or _default_threads(), pacing=pacing)
    return _run(_workload(parts, pace, request), address, engine, output.json_to)


def _workload(parts: SplitResult, pace: PaceOptions, request: RequestOptions) -> Workload:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = request.header or []
    headers = [*headers, *_host_header(parts, headers)]
    timeout_ns = duration_of("--timeout", pace.timeout)
    return Workload(
        loop=_loop(pace),
        stop=_stop(pace.requests, pace.duration),
        request=make_request(request.method, path, headers, request.body, request.keep_alive),
        warmup_ns=optional(wait_of, "--warmup", pace.warmup) or 0,
        timeout_ns=timeout_ns,
        grace_ns=timeout_ns if pace.grace is None else wait_of("--grace", pace.grace),
        expect_status=request.expect_status,
    )


def _run(workload: Workload, address: Address, engine: EngineChoice, json_to: str | None) -> int:
    from prony.cli.progress import LoadProgress
    from prony.engine.local import LocalEngine
    from prony.faces.json_load import load_result
    from prony.reading.load import read_load
    from prony.sandbox.base import EngineSeat

    with LoadProgress(workload) as progress:
        recording = LocalEngine(engine).run(workload, address, EngineSeat(cpus=()), progress.on_event)
    reading = read_load(recording)
    if json_to != "-":
        from prony.faces.terminal import TerminalReporter
        from prony.report.load import load_document

        TerminalReporter().write_report(load_document(reading))
    # Last: the figures are on the screen even if the file cannot be written.
    if json_to is not None:
        write_output(json.dumps(load_result(reading), indent=2), json_to)
    return _status(recording)


def _status(recording: Recording) -> int:
    if recording.window.interrupted:
        return ExitCode.INTERRUPTED
    # Without any reply there is no measurement, and scripts must notice.
    return ExitCode.DONE if recording.account.ok else ExitCode.COULD_NOT_MEASURE


def _target(url: str) -> SplitResult:
    refusal = UsageError(
        f"`{_without_credentials(url)}` is not a target; expected `http://HOST[:PORT][/PATH]`",
        hint="prony load http://127.0.0.1:8000/",
    )
    # The parser would drop some of these, and the engine would refuse others.
    if re.search(r"[\x00-\x20\x7f]", url):
        raise refusal
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        port = parts.port
    except ValueError:
        raise refusal from None
    if parts.scheme == "https":
        raise UsageError(
            f"`{_without_credentials(url)}`: TLS is not supported yet; expected `http://HOST[:PORT][/PATH]`"
        )
    if "//" not in url and port is None and not is_loopback(parts.hostname or ""):
        raise refusal
    if parts.scheme != "http" or not parts.hostname or port == 0 or parts.username is not None:
        raise refusal
    return parts


def _without_credentials(url: str) -> str:
    """Return the URL without user and password: messages end in logs.

    >>> _without_credentials("http://me:secret@host/a@b")
    'http://...@host/a@b'
    """
    return re.sub(r"^([a-zA-Z][a-zA-Z0-9+.-]*://)?[^/?#]*@", lambda found: f"{found[1] or ''}...@", url)


def _host_header(parts: SplitResult, headers: list[str]) -> list[str]:
    """The engine writes `Host` from the address; a name in the URL must reach the server as typed."""
    is_given = any(header.partition(":")[0].strip().lower() == "host" for header in headers)
    is_literal = is_loopback(parts.hostname or "") and parts.hostname != "localhost"
    return [] if is_given or is_literal else [f"Host: {parts.netloc}"]


def _loop(pace: PaceOptions) -> Loop:
    counts = optional(connections_of, "-c", pace.connections) or ()
    if len(counts) > 1:
        raise UsageError(f"`-c {pace.connections}`: one count here; only `prony run` takes a list")
    if pace.rate is None:
        return ClosedLoop(counts[0] if counts else 10)
    loop = OpenLoop(rate_of("--rate", pace.rate), pace.arrivals, pace.seed)
    return replace(loop, connections=counts[0]) if counts else loop


def _stop(requests: int | None, duration: str | None) -> CountStop | DurationStop:
    if requests is not None and duration is not None:
        raise UsageError("`-n` and `-d` both end the window; expected one of them")
    if requests is not None:
        return CountStop(requests)
    return DurationStop(duration_of("-d", duration or "10s"))


def _pacing(wish: PacingWish | None) -> Pacing:
    """Return the pacing as typed; with a single CPU the server needs what spinning would take."""
    one_cpu = len(os.sched_getaffinity(0)) == 1
    return pacing_of(wish, shares_cpus=one_cpu and wish is None)


def _default_threads() -> int:
    return max(1, len(os.sched_getaffinity(0)) // 2)

"""``prony load``: the engine on its own.

>>> overwrite_words(["no such word"])
"""

import contextlib
import ctypes
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from prony.cli.applicable import given, refuse_closed_loop_options
from prony.cli.flat import flattened
from prony.cli.load_options import (
    AskOptions,
    CheckOptions,
    FleetOptions,
    GateOptions,
    PaceOptions,
    PairOptions,
    ProtocolOptions,
    ResultOptions,
    TlsOptions,
    WayOptions,
    refuse_without_tls,
    tls_of,
)
from prony.cli.load_progress import PrometheusFile, check_prometheus
from prony.cli.options import (
    check_output,
    connections_of,
    duration_of,
    optional,
    pacing_of,
    rate_of,
    read_option,
    stages_of,
    wait_of,
    write_html,
    write_output,
)
from prony.cli.request_files import FileOptions, RequestFiles, expected_of, paths_of, request_of
from prony.cli.talk import ending_as_signalled, say, show
from prony.core.errors import ExitCode, UsageError
from prony.core.units import SECOND_NS, format_count, format_duration, seconds
from prony.engine.target import LoadTarget, target_of
from prony.engine.ways import Way, password_in, without_credentials
from prony.model.address import Address
from prony.model.json_codec import Json
from prony.model.workload import (
    ClosedLoop,
    ConnectionStage,
    CountStop,
    DurationStop,
    EngineChoice,
    Loop,
    MixPath,
    OpenLoop,
    Pacing,
    RateStage,
    Workload,
)

if TYPE_CHECKING:
    from prony.engine.generator import Engine
    from prony.figures.load_pairs import LoadSide
    from prony.figures.objective import Condition
    from prony.model.recording import Recording
    from prony.reading.load import LoadReading

Size = TypeVar("Size", int, float)
Fresh = Callable[[], Sequence[str] | None]

# The engine's most: each stage has latencies of its own.
MAX_STAGES = 100
# Of --compare in an open loop: a window has a p99 (ten requests above it, and some more by chance), unless
# that takes long. In a closed one many short windows say more: about two minutes of both.
_PAIR_WINDOW_NS, _LONGEST_PAIR_WINDOW_NS, _PAIR_REQUESTS = 2 * SECOND_NS, 30 * SECOND_NS, 1_200
_PAIR_WARMUP_NS = SECOND_NS // 2
_PAIRS, _SHORT_PAIRS = 20, 80
# What describes one load only, and options that change nothing without a second one.
_OF_ONE_LOAD = (
    "fail_if",
    "strict",
    "html_to",
    "latencies",
    "hdr_log",
    "prometheus",
    "stages",
    "fleet",
    "groups",
    "re_resolve",
)

EPILOG = """\
Examples:
  prony load http://127.0.0.1:8000/ -c 100 -d 30s             closed loop, 100 connections
  prony load http://127.0.0.1:8000/ --rate 550 -d 3m          open loop: latency from the intended time
  prony load http://127.0.0.1:8000/ --stages 30s:100,2m:100-1k,30s:1k    a step, a ramp, a step
  prony load http://127.0.0.1:8000/ --stages 30s:10c,2m:10-200c    connections: a step, a ramp
  prony load http://127.0.0.1:8000/ -n 10000 -c 50            exactly 10,000 requests
  prony load http://127.0.0.1:8000/ --rate 200 -m POST -H 'Content-Type: text/plain' --body @order.txt
  prony load fcgi://127.0.0.1:9000/cart                       FastCGI; uwsgi:// and scgi:// likewise
  prony load https://localhost:8443/ --cacert ca.pem -c 50    TLS, verified by this authority
  prony load https://localhost:8443/ --http2 -c 10 --streams 10    HTTP/2, 100 requests at once
  prony load http://127.0.0.1:8000/ --http1.0 -c 50           HTTP/1.0, a connection a request
  prony load unix:/run/app.sock:/cart                         HTTP over a Unix socket
  prony load fcgi://unix:/run/app.sock:/cart                  another protocol over a Unix socket
  prony load http://127.0.0.1:8000/ --path /=9 --path /cart=1     a mix of paths, by their weights
  prony load http://127.0.0.1:8000/ --requests-from urls.csv      the requests of a file
  prony load http://127.0.0.1:8000/ --path '/items/{{id}}' --data ids.csv    values from a file
  prony load http://shop.example/ --resolve shop.example:80:127.0.0.1    this machine, by the server's name
  prony load http://me:secret@127.0.0.1:8000/ --follow 3      a password; redirects followed
  prony load http://127.0.0.1:8000/ -x http://127.0.0.1:3128  through an HTTP proxy
  prony load http://127.0.0.1:8000/ --requests-per-connection 100    as clients that come and go
  prony load http://127.0.0.1:8000/ --rate 550 --groups regions.toml    users near and far
  prony load http://127.0.0.1:8000/ --expect-status 200,3xx --expect-body-contains 'Your cart'
  prony load http://127.0.0.1:8000/ --rate 550 --fail-if 'p99 > 50ms' --fail-if 'errors > 0.1%'    for CI
  prony load http://127.0.0.1:8000/ --rate 1k --latencies all.csv --hdr-log load.hlog    raw latencies
  prony load http://127.0.0.1:8000/ --rate 550 -d 1h --prometheus prony.prom    for a dashboard
  prony load http://127.0.0.1:8000/ -c 20 --html load.html    with charts, for a browser: one file, no network
  prony load http://127.0.0.1:8000/ -c 20 --compare http://127.0.0.1:8001/    two servers, in turns
  prony load http://127.0.0.1:8000/ --rate 20k --fleet local:4    four generators that share the load
  prony load http://127.0.0.1:8000/ -c 10 --json -            the result as JSON (docs/reference/json.md)
"""


@flattened
@ending_as_signalled
def load(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(help="What to load: http://, https://, fcgi://, uwsgi://, scgi:// or unix:.")
    ],
    pace: PaceOptions,
    ask: AskOptions,
    protocol: ProtocolOptions,
    files: FileOptions,
    way: WayOptions,
    tls: TlsOptions,
    check: CheckOptions,
    gate: GateOptions,
    pair: PairOptions,
    several: FleetOptions,
    output: ResultOptions,
) -> int:
    """Load one address: closed loop, open loop or a fixed count, with an account of every request."""
    typed = given(context)
    files.check(typed, ask.is_mix)
    ask.check(keeps=protocol.keeps(ask))
    is_drawn = ask.is_mix or files.names_a_file
    if pair.compare is None:
        # The seed of a mix is of use in any loop.
        of_loop = {name: option for name, option in typed.items() if name != "seed" or not is_drawn}
        refuse_closed_loop_options(of_loop)
        _refuse_beside_connection_stages(of_loop, pace)
    _check_outputs(output)
    overwrite_words(_passwords(url, pair, way))
    own = RequestFiles(files, pace.seed)
    context.call_on_close(own.close)
    if pair.compare is not None:
        _refuse_of_one_load(typed)
        asked = _Asked(pace, ask, protocol, own, way.way, tls, check)
        sides = tuple(_side(one, asked) for one in (url, pair.compare))
        way.way.check([asked.server(one) for one in (url, pair.compare)])
        refuse_without_tls(typed, [side.address for side in sides])
        return _compared(sides, pair, pace, output, own)
    if "pairs" in typed:
        raise UsageError("`--pairs` only works with `--compare`", hint="add --compare URL, or leave it out")
    conditions = tuple(_condition(text) for text in gate.fail_if or ())
    asked = _Asked(pace, ask, protocol, own, way.way, tls, check)
    way.way.check([asked.server(url)])
    workload, address = asked.load(url)
    if ask.groups is not None:
        workload = _among_groups(workload, ask.groups, typed)
        pace = replace(pace, pacing=pace.pacing or _pacing_of_groups(workload))
    refuse_without_tls(typed, (address,))
    with (
        _looked_up(url, asked, way.re_resolve, address) as fresh,
        PrometheusFile(output.prometheus) as metrics,
    ):
        engine = _generator(typed, address, pace, several, output, own, fresh)
        recording = _measured(workload, address, engine, metrics)
    metrics.finish(recording)
    status = _shown(recording, conditions, output)
    return status or _strict_status(recording, gate.strict)


def _passwords(url: str, pair: PairOptions, way: WayOptions) -> Iterator[str]:
    for one in (url, pair.compare, way.proxy):
        yield from password_in(one or "")
    yield way.proxy_user or ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What every URL of a command is asked for, and how."""

    pace: PaceOptions
    ask: AskOptions
    protocol: ProtocolOptions
    files: RequestFiles
    way: Way
    tls: TlsOptions
    check: CheckOptions

    def server(self, url: str) -> tuple[str, int]:
        target = target_of(url)
        return target.host, target.port

    def load(self, url: str) -> tuple[Workload, Address]:
        target = target_of(url).along(self.way)
        hosts, form = self.protocol.allow_host or (), self.protocol.form(self.ask.keep_alive)
        address = target.address(hosts, tls_of(self.tls), form, say, self.way)
        self.ask.check_wire(address.wire)
        _check_behind_proxy(self.ask.header or (), address)
        load = _workload(target, self.pace, self.ask, self.protocol)
        paths = _paths(target, self.ask)
        checked = self.files.of(load, paths)
        checked = checked.expecting(expected_of(self.check, checked.request))
        return checked.following(self.ask.follow), address

    def addresses(self, url: str) -> tuple[str, ...]:
        """Return where connections go now, as far as that is allowed."""
        hosts, form = self.protocol.allow_host or (), self.protocol.form(self.ask.keep_alive)
        found = target_of(url).address(hosts, form=form, way=self.way)
        return (found.host, *found.others)


@contextmanager
def _looked_up(url: str, asked: _Asked, every: str | None, address: Address) -> Iterator[Fresh]:
    """Yield what knows the addresses of new connections while the name is looked up again."""
    if every is None:
        yield lambda: None
        return
    from prony.engine.ways import Renewal

    name = target_of(url).looked_up(asked.way)
    first, every_s = (address.host, *address.others), seconds(duration_of("--re-resolve", every))
    with Renewal(name, first, lambda: asked.addresses(url), every_s, say) as renewal:
        yield renewal.fresh


def _generator(
    typed: Mapping[str, str],
    address: Address,
    pace: PaceOptions,
    several: FleetOptions,
    output: ResultOptions,
    files: RequestFiles,
    fresh: Fresh,
) -> "Engine":
    if several.fleet is None:
        wrong = [typed[name] for name in ("fleet_certificates", "on_loss") if name in typed]
        if wrong:
            raise UsageError(f"`{wrong[0]}` only works with `--fleet`", hint="add --fleet, or leave it out")
        from prony.engine.process import LocalEngine

        return LocalEngine(_engine(pace), output.latencies, fresh, files.open_files)
    from prony.cli.fleet import fleet_engine

    if "re_resolve" in typed:
        raise UsageError("`--re-resolve` does not work with `--fleet`: each generator would look for itself")
    if output.latencies is not None:
        raise UsageError("`--latencies` does not work with `--fleet`: each generator has a clock of its own")
    return fleet_engine(several, address, _engine(pace), pace)


def _among_groups(workload: Workload, file: Path, typed: Mapping[str, str]) -> Workload:
    """Return the load as one of the groups of users that a file describes."""
    from prony.cli.request_files import user_groups
    from prony.plan.loads import users_of

    not_among = ["fleet", "latencies"]
    if isinstance(workload.loop, ClosedLoop):
        not_among.append("stages")
    wrong = [typed[name] for name in not_among if name in typed]
    if wrong:
        of_rates = ", but for stages of rates" if wrong[0] == "--stages" else ""
        raise UsageError(
            f"`{wrong[0]}` does not work with `--groups`{of_rates}", hint="leave out one of them"
        )
    groups = users_of(user_groups(file))
    if "form" in typed and any(
        name.lower() == "content-type" for group in groups for name, _ in group.headers
    ):
        raise UsageError(f"`{file.name}`: a group's `Content-Type` and `--form` exclude each other")
    return replace(workload, groups=groups)


# A closed loop in stages has no use for these, and its stages say how many connections it has.
_NOT_IN_CONNECTION_STAGES = ("connections", "arrivals", "seed", "pacing")


def _refuse_beside_connection_stages(typed: Mapping[str, str], pace: PaceOptions) -> None:
    wrong = [typed[name] for name in _NOT_IN_CONNECTION_STAGES if name in typed]
    if wrong and _connection_stages(pace):
        raise UsageError(
            f"`{wrong[0]}` does not work with `--stages {pace.stages}`, which sets the connections of a "
            "closed loop",
            hint=f"leave out {wrong[0]}, or give rates, such as --stages 30s:100,2m:100-1k",
        )


def _refuse_of_one_load(typed: Mapping[str, str]) -> None:
    wrong = [typed[name] for name in _OF_ONE_LOAD if name in typed]
    if wrong:
        raise UsageError(
            f"`{wrong[0]}` does not work with `--compare`, which has many short windows",
            hint="load each server alone for it",
        )
    if "rate" not in typed:
        refuse_closed_loop_options({name: option for name, option in typed.items() if name != "seed"})


def _side(url: str, asked: _Asked) -> "LoadSide":
    from prony.figures.load_pairs import LoadSide

    return LoadSide(without_credentials(url), *asked.load(url))


def _compared(
    sides: "Sequence[LoadSide]",
    pair: PairOptions,
    pace: PaceOptions,
    output: ResultOptions,
    own: RequestFiles,
) -> int:
    from prony.cli.load_pairs import compare_loads, why_long_windows
    from prony.engine.process import LocalEngine
    from prony.figures.load_pairs import PairedLoads
    from prony.study.rounds import LEAD_NS, WINDOW_NS

    engine = LocalEngine(_engine(pace), requests=own.open_files)
    is_short = False
    if pace.duration is None and pace.requests is None:
        reason = why_long_windows(sides, engine)
        is_short = reason is None
        length_ns = WINDOW_NS if is_short else _pair_window_ns(sides[0].workload.loop)
        sides = [replace(one, workload=replace(one.workload, stop=DurationStop(length_ns))) for one in sides]
        if reason:
            say(f"windows of {format_duration(length_ns)}: {reason}")
    if pace.warmup is None:
        lead_ns = LEAD_NS if is_short else _PAIR_WARMUP_NS
        sides = [replace(one, workload=replace(one.workload, warmup_ns=lead_ns)) for one in sides]
    first, second = sides
    pairs = pair.pairs or (_SHORT_PAIRS if is_short else _PAIRS)
    return compare_loads(PairedLoads(first, second, pairs, pace.seed), engine, output.json_to)


def _pair_window_ns(loop: Loop) -> int:
    """Return the length of a long window that nobody set.

    >>> [_pair_window_ns(OpenLoop(rate)) // SECOND_NS for rate in (5000.0, 300.0, 1.0)]
    [2, 4, 30]
    """
    if not isinstance(loop, OpenLoop):
        return _PAIR_WINDOW_NS
    needed_ns = round(_PAIR_REQUESTS / loop.rate_per_s * SECOND_NS)
    return min(max(_PAIR_WINDOW_NS, needed_ns), _LONGEST_PAIR_WINDOW_NS)


def _engine(pace: PaceOptions) -> EngineChoice:
    threads = pace.threads or max(1, len(os.sched_getaffinity(0)) // 2)
    return EngineChoice(threads=threads, pacing=_pacing(pace.pacing))


def _check_outputs(output: ResultOptions) -> None:
    for one in (output.json_to, output.html_to):
        check_output(one)
    files = [file for file in (output.latencies, output.hdr_log) if file is not None]
    for file in files:
        check_output(str(file))
    check_prometheus(output.prometheus)
    named, of_shell = output.latencies, Path("/dev/fd")
    if named is not None and named.is_fifo() and named.parent != of_shell:
        raise UsageError(
            f"`--latencies {named}` is a pipe, and may have no reader; expected a file, or a pipe "
            "of the shell such as `>(gzip > latencies.csv.gz)`"
        )


def _workload(target: LoadTarget, pace: PaceOptions, ask: AskOptions, protocol: ProtocolOptions) -> Workload:
    headers = _headers(target, ask.header or ())
    loop, stop, paths = _loop(pace), _stop(pace), _paths(target, ask)
    request = request_of(replace(ask, header=headers), paths[0].path)
    load = Workload(
        loop=loop,
        stop=stop,
        request=replace(request, keep_alive=protocol.keeps(ask)),
        warmup_ns=_usual_warmup_ns(loop, stop) if pace.warmup is None else wait_of("--warmup", pace.warmup),
        timeout_ns=duration_of("--timeout", pace.timeout),
        connect_timeout_ns=optional(duration_of, "--connect-timeout", pace.connect_timeout),
        streams=protocol.at_once,
        connection_requests=ask.requests_per_connection,
        connection_age_ns=optional(duration_of, "--connection-age", ask.connection_age),
    )
    load = replace(load, grace_ns=load.longest_ns if pace.grace is None else wait_of("--grace", pace.grace))
    return load.asking_for(paths, pace.seed)


def _paths(target: LoadTarget, ask: AskOptions) -> tuple[MixPath, ...]:
    if not ask.path:
        return (MixPath(target.path),)
    if target.path != "/":
        raise UsageError(
            f"`--path` and the path of the URL, `{target.path}`, exclude each other",
            hint=f"leave it out of the URL, and ask for it too: --path '{target.path}'",
        )
    return paths_of(ask.path)


def _condition(text: str) -> "Condition":
    from prony.figures.objective import parse_load_condition

    return read_option("--fail-if", text, parse_load_condition)


def _usual_warmup_ns(loop: Loop, stop: CountStop | DurationStop) -> int:
    """An open loop opens connections on demand: without a warm-up the first of them stand in the tail.

    Where exactly so many requests are wanted, none is sent besides.
    """
    return SECOND_NS if isinstance(loop, OpenLoop) and isinstance(stop, DurationStop) else 0


def _strict_status(recording: "Recording", strict: bool) -> int:
    """Return 3 for a load whose generator was the limit, or may have been, where that is to fail."""
    from prony.model.limit import Limited

    is_limited = strict and recording.generator.verdict.limited is not Limited.NO
    return ExitCode.COULD_NOT_MEASURE if is_limited else ExitCode.DONE


def _measured(workload: Workload, address: Address, engine: "Engine", metrics: PrometheusFile) -> "Recording":
    from prony.cli.load_progress import LoadProgress
    from prony.model.sandbox import EngineSeat

    with LoadProgress(workload) as progress:

        def on_event(event: Json) -> None:
            progress.on_event(event)
            metrics.on_event(event)

        return engine.run(workload, address, EngineSeat(cpus=()), on_event)


def _shown(recording: "Recording", conditions: "Sequence[Condition]", output: ResultOptions) -> int:
    """Show the result, write its files, and return the exit status."""
    from prony.reading.load import read_load
    from prony.report.formats.as_json import document_json
    from prony.report.formats.csv_files import interval_log

    reading = read_load(recording, conditions)
    if output.json_to != "-":
        from prony.report.formats.terminal import TerminalReporter
        from prony.report.load import load_document

        TerminalReporter().write_report(load_document(reading))
        for line in _status_lines(recording):
            show(line)
    # Last: the figures are on the screen even if the file cannot be written.
    if output.hdr_log is not None:
        write_output(interval_log(recording), str(output.hdr_log))
    if output.html_to is not None:
        from prony.report.page.load import page_of_load

        write_html(page_of_load(reading), output.html_to)
    if output.json_to is not None:
        write_output(json.dumps(document_json(reading), indent=2), output.json_to)
    return _status(reading)


def _status_lines(recording: "Recording") -> Iterator[str]:
    """Yield how many valid replies had which status, and that most of them lead elsewhere.

    >>> from types import SimpleNamespace as Of
    >>> by_status = Of(valid_by_status={"200": 20, "302": 1200})
    >>> list(_status_lines(Of(account=by_status, redirected_to="/login")))[0]
    'statuses: 200 20; 302 1,200'
    """
    from prony.figures.account import are_redirects

    valid = recording.account.valid_by_status
    if not valid:
        return
    yield "statuses: " + "; ".join(f"{status} {format_count(number)}" for status, number in valid.items())
    if are_redirects(valid):
        where = f" to `{recording.redirected_to}`" if recording.redirected_to else ""
        then = "--follow 3 follows them, with --expect-status 200 they are failures"
        yield f"most replies are redirects{where}; {then}"


def _status(reading: "LoadReading") -> int:
    held = [one.holds for one in reading.conditions]
    if reading.recording.window.interrupted:
        return ExitCode.INTERRUPTED
    if True in held:
        return ExitCode.VERDICT_NEGATIVE
    raw = reading.recording.raw_latencies
    # Without any reply there is no measurement, and scripts must notice; nor do they get half a file unseen.
    is_known = reading.recording.account.ok and None not in held and not (raw and raw.lost)
    return ExitCode.DONE if is_known else ExitCode.COULD_NOT_MEASURE


def _headers(target: LoadTarget, given_headers: Sequence[str]) -> list[str]:
    typed = _names(given_headers)
    of_url = (f"{name}: {value}" for name, value in target.headers if name.lower() not in typed)
    return [*given_headers, *of_url]


def _names(headers: Sequence[str]) -> set[str]:
    return {header.partition(":")[0].strip().lower() for header in headers}


def _check_behind_proxy(typed: Sequence[str], address: Address) -> None:
    """A proxy that reads requests asks for the host of their URL, whatever `Host` is (RFC 9112 3.2.2); one
    that does not read them gets no header.
    """
    name, why, hint = ("host", "the proxy asks for the host of the URL", "put the name into the URL")
    if address.tls is not None:
        why = "it would reach the server through the tunnel, and not the proxy"
        name, hint = "proxy-authorization", "--proxy-user USER:PASSWORD"
    if address.proxy is not None and name in _names(typed):
        raise UsageError(f"`-H '{name.title()}: ...'` does not work with `--proxy`: {why}", hint=hint)


def _loop(pace: PaceOptions) -> Loop:
    counts = optional(connections_of, "-c", pace.connections) or ()
    if len(counts) > 1:
        raise UsageError(f"`-c {pace.connections}`: one count here; only `prony run` takes a list")
    if counted := _connection_stages(pace):
        most = max(max(stage.from_connections, stage.to_connections) for stage in counted)
        return ClosedLoop(_something(pace, most, "a connection"), counted)
    if pace.rate is None and pace.stages is None:
        return ClosedLoop(counts[0] if counts else 10)
    loop = OpenLoop(_rate(pace), pace.arrivals, pace.seed, stages=_rate_stages(pace))
    return replace(loop, connections=counts[0]) if counts else loop


def _stages(pace: PaceOptions) -> tuple[RateStage | ConnectionStage, ...]:
    stages = optional(stages_of, "--stages", pace.stages) or ()
    if len(stages) > MAX_STAGES:
        raise UsageError(f"`--stages` has {len(stages)} stages; expected at most {MAX_STAGES}")
    return stages


def _rate_stages(pace: PaceOptions) -> tuple[RateStage, ...]:
    return tuple(stage for stage in _stages(pace) if isinstance(stage, RateStage))


def _connection_stages(pace: PaceOptions) -> tuple[ConnectionStage, ...]:
    return tuple(stage for stage in _stages(pace) if isinstance(stage, ConnectionStage))


def _rate(pace: PaceOptions) -> float:
    if pace.rate is not None:
        return rate_of("--rate", pace.rate)
    highest = max(max(stage.from_per_s, stage.to_per_s) for stage in _rate_stages(pace))
    return _something(pace, highest, "a rate above 0")


def _something(pace: PaceOptions, most: Size, expected: str) -> Size:
    """Return the most that the stages ask for, which is more than nothing."""
    if not most:
        raise UsageError(f"`--stages {pace.stages}` asks for nothing; expected {expected}")
    return most


def _stop(pace: PaceOptions) -> CountStop | DurationStop:
    requests, duration = pace.requests, pace.duration
    if pace.stages is not None:
        size, option_of_it = ("connections", "-c") if _connection_stages(pace) else ("rate", "--rate")
        for option, value in (("--rate", pace.rate), ("-d", duration), ("-n", requests)):
            if value is not None:
                raise UsageError(
                    f"`--stages` and `{option}` exclude each other: the stages set the {size} and the length",
                    hint=f"leave out {option}, or replace --stages by {option_of_it} and -d",
                )
        return DurationStop(sum(stage.duration_ns for stage in _stages(pace)))
    if requests is not None and duration is not None:
        raise UsageError("`-n` and `-d` both end the window; expected one of them")
    if requests is not None:
        return CountStop(requests)
    return DurationStop(duration_of("-d", duration or "10s"))


def _pacing_of_groups(workload: Workload) -> Pacing:
    """Return the usual pacing of groups, each of which has a thread: more than all CPUs must not spin."""
    return Pacing.usual(shares_cpus=len(workload.groups) >= len(os.sched_getaffinity(0)))


def _pacing(wish: Pacing | None) -> Pacing:
    """Return the pacing as typed; with a single CPU the server needs what spinning would take."""
    one_cpu = len(os.sched_getaffinity(0)) == 1
    return pacing_of(wish, shares_cpus=one_cpu and wish is None)


# --- the line of this process in the process list, which every user of the machine can read ---------------


# proc_pid_stat(5): where the arguments begin, behind the name in brackets, which ends at the last `)`.
_ARG_START = 48 - 3


def overwrite_words(secrets: Iterable[str]) -> None:
    """Overwrite words of the command line where the kernel reads it; where that cannot be, do nothing."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = Path("/proc/self/cmdline").read_bytes()
        start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_ARG_START])
        if start and ctypes.string_at(start, len(line)) == line:
            for place, length in _places(line, secrets):
                ctypes.memset(start + place, ord("x"), length)


def _places(line: bytes, secrets: Iterable[str]) -> Iterable[tuple[int, int]]:
    for secret in map(os.fsencode, secrets):
        place = line.find(secret) if secret else -1
        while place >= 0:
            yield place, len(secret)
            place = line.find(secret, place + len(secret))

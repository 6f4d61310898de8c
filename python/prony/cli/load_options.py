"""What `prony load` takes, as options in panels; those of its requests are of `prony run` and `tune` too.

What `prony load` asks of a server at an https:// URL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from prony.cli.flat import option
from prony.cli.options import MAX_SEED, MAX_THREADS, certificates_option, pacing_option, timeout_option
from prony.core.errors import UsageError
from prony.engine.generator import OnLoss
from prony.engine.target import HttpForm
from prony.engine.ways import Way, connect_to_of, each, proxy_of, resolve_of
from prony.model.address import KEEPING, Address, HttpVersion, Tls, TlsCipher, TlsVersion, Wire
from prony.model.workload import MAX_HOPS, MAX_STREAMS, Arrivals, Pacing

# The engine's largest count; a day at its highest rate has fewer requests.
_MAX_REQUESTS = 10**15
# With fewer there is no verdict.
_LEAST_PAIRS = 5


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What users ask for, who they are, and how they connect: of `prony load`, `run` and `tune`."""

    PANEL: ClassVar[str] = "Requests"

    path: list[str] | None = option(
        None, "Ask for this path (/, or the URL's); several are a mix: --path /=9 --path /cart=1."
    )
    method: str | None = option(None, "The method of the requests (GET; with --form POST).", "-m", "--method")
    header: list[str] | None = option(
        None, "A header of the requests, `Name: value`; may be repeated.", "-H", "--header"
    )
    body: str | None = option(None, "The body of the requests; @FILE reads it from a file.")
    form: list[str] | None = option(
        None,
        "Send a field of a multipart form, by POST; NAME=@FILE sends a file; may be repeated.",
        metavar="NAME=VALUE",
    )
    keep_alive: bool | None = option(
        None,
        "Keep connections, or open one for each request (kept; with HTTP/1.0 one for each).",
        "--keepalive/--no-keepalive",
    )
    requests_per_connection: int | None = option(
        None, "End each connection after so many requests.", min=1, max=_MAX_REQUESTS
    )
    connection_age: str | None = option(
        None, "End each connection with the first reply after this time, such as 10s."
    )
    follow: int = option(
        0, "Follow up to so many redirects in a row, on the same server only (0).", min=0, max=MAX_HOPS
    )
    groups: Path | None = option(
        None,
        "Groups of users, such as those of regions, from this TOML file: each with a name, a share "
        "of the load, a delay, a source address and headers; figures by group.",
        metavar="FILE",
    )

    @property
    def is_mix(self) -> bool:
        """Whether several paths are typed."""
        return len(self.path or ()) > 1

    def check(self, *, keeps: bool) -> None:
        """Refuse options that do not fit together; ``keeps``: connections are kept.

        *Errors*: UsageError naming the option.
        """
        if self.form and self.body is not None:
            raise UsageError("`--form` and `--body` exclude each other: a request has one body")
        if not keeps and (self.requests_per_connection is not None or self.connection_age is not None):
            raise UsageError(
                "a connection for each request has no other limit: `--requests-per-connection` and "
                "`--connection-age` need connections that are kept",
                hint="leave out the limit, or --no-keepalive; with --http1.0 add --keepalive",
            )

    def check_wire(self, wire: Wire) -> None:
        """Refuse what the protocol has no use for.

        *Errors*: UsageError naming the option.
        """
        for name, is_given, wires in (
            ("--follow", bool(self.follow), (Wire.HTTP,)),
            ("--requests-per-connection", self.requests_per_connection is not None, KEEPING),
            ("--connection-age", self.connection_age is not None, KEEPING),
        ):
            if is_given and wire not in wires:
                known = " or ".join(wires)
                raise UsageError(f"`{name}` does not work with {wire}; expected {known}")


@dataclass(frozen=True, slots=True)
class ProtocolOptions:
    """How the server is spoken to, and which may be."""

    PANEL: ClassVar[str] = "Protocol"

    http1_0: bool = option(
        False, "Speak HTTP/1.0. With --keepalive, connections stay open if the server agrees.", "--http1.0"
    )
    http2: bool = option(
        False, "Speak HTTP/2: over TLS if the server agrees (ALPN), else by prior knowledge (h2c).", "--http2"
    )
    streams: int | None = option(
        None, "With --http2: how many requests each connection has at once (1).", min=1, max=MAX_STREAMS
    )
    allow_host: list[str] | None = option(None, "Allow load on this other machine; may be repeated.")

    @property
    def at_once(self) -> int:
        """The requests at once on each connection: one without HTTP/2.

        *Errors*: UsageError for options that do not fit together.
        """
        if self.streams is not None and not self.http2:
            raise UsageError(
                "`--streams` only works with `--http2`: otherwise a connection has one request at a time",
                hint="add --http2, or ask for more connections with -c",
            )
        return self.streams or 1

    def keeps(self, ask: AskOptions) -> bool:
        """Return whether connections are to be kept.

        *Errors*: UsageError where a header says the opposite.
        """
        headers = ask.header or ()
        if ask.keep_alive is None:
            return not self.http1_0 or _says(headers, "keep-alive")
        if ask.keep_alive and _says(headers, "close"):
            raise UsageError(
                "`--keepalive` and `Connection: close` contradict each other", hint="leave out one of them"
            )
        return ask.keep_alive

    def form(self, keep_alive: bool | None) -> HttpForm:
        """Return how HTTP is spoken; ``keep_alive``: as it was typed.

        *Errors*: UsageError for options that do not fit together.
        """
        if self.http1_0:
            if self.http2:
                raise UsageError("`--http1.0` and `--http2` exclude each other", hint="leave out one of them")
            return HttpForm("--http1.0", version=HttpVersion.HTTP_1_0)
        if self.http2:
            if keep_alive is False:
                raise UsageError(
                    "`--no-keepalive` does not work with `--http2`, whose connections are kept",
                    hint="leave out one of them",
                )
            return HttpForm("--http2", Wire.HTTP2)
        return HttpForm()


def _says(headers: Sequence[str], option: str) -> bool:
    """Return whether a typed `Connection` has an option."""
    typed = (header.lower().partition(":") for header in headers)
    values = (value for name, _, value in typed if name.strip() == "connection")
    return any(option in map(str.strip, value.split(",")) for value in values)


@dataclass(frozen=True, slots=True)
class WayOptions:
    """Where connections go, while the server is asked for as the URL says."""

    PANEL: ClassVar[str] = "Names and ways"

    resolve: list[str] | None = option(
        None,
        "Take this address for a host, or several with commas between; may be repeated.",
        metavar="HOST:PORT:ADDRESS",
    )
    connect_to: list[str] | None = option(
        None,
        "Connect to the second host and port in place of the first; parts may be empty; may be repeated.",
        metavar="HOST1:PORT1:HOST2:PORT2",
    )
    re_resolve: str | None = option(
        None, "Look the name up again so often, such as 30s: new connections go to its addresses of then."
    )
    proxy: str | None = option(
        None,
        "Go through this HTTP proxy, http://[USER:PASSWORD@]HOST:PORT; with TLS by CONNECT.",
        "-x",
        "--proxy",
        metavar="URL",
    )
    proxy_user: str | None = option(None, "User and password for the proxy (Basic).", metavar="USER:PASSWORD")

    @property
    def way(self) -> Way:
        """What is typed.

        *Errors*: UsageError for what is no way, and for options that do not fit together.
        """
        if self.proxy is None and self.proxy_user is not None:
            raise UsageError("`--proxy-user` only works with `--proxy`", hint="add --proxy http://HOST:PORT")
        if self.proxy is not None and (self.resolve or self.connect_to or self.re_resolve):
            raise UsageError(
                "`--proxy` excludes `--resolve`, `--connect-to` and `--re-resolve`: the proxy looks up where "
                "to connect to",
                hint="leave out one of them",
            )
        proxy = None if self.proxy is None else proxy_of(self.proxy, self.proxy_user)
        return Way(each(self.resolve, resolve_of), each(self.connect_to, connect_to_of), proxy)


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """The size and the length of the load."""

    PANEL: ClassVar[str] = "Load"

    connections: str | None = option(
        None,
        "Closed loop: this many connections (10). "
        "Open loop: at most this many (as many as can be outstanding).",
        "-c",
        "--connections",
    )
    rate: str | None = option(
        None, "Open loop: requests per second (550, 2.5k, 90/m), whatever the server does.", "--rate", "-r"
    )
    stages: str | None = option(
        None,
        "A load that changes in steps and ramps: of rates, 30s:100,2m:100-1k (open loop), "
        "or of connections, 30s:10c,2m:10-100c (closed loop). All stages are the window.",
    )
    arrivals: Arrivals = option(
        Arrivals.CONSTANT, "Open loop: evenly spaced, or at random as independent users arrive."
    )
    seed: int = option(1, "Seed of random arrivals, and of the order of a mix.", min=0, max=MAX_SEED)
    requests: int | None = option(
        None, "Stop after exactly this many requests.", "-n", "--requests", min=1, max=_MAX_REQUESTS
    )
    duration: str | None = option(None, "Length of the window (10s).", "-d", "--duration")
    warmup: str | None = option(
        None, "The same load before the window, not recorded (0s; with --rate and no -n 1s)."
    )
    timeout: str = timeout_option()
    connect_timeout: str | None = option(
        None,
        "How long a request may wait for a connection; --timeout then limits the wait for "
        "its reply alone (without this option: both together).",
    )
    grace: str | None = option(
        None, "How long to wait for replies after the window (the sum of the time-outs)."
    )
    threads: int | None = option(None, "Worker threads (half the CPUs).", min=1, max=MAX_THREADS)
    pacing: Pacing | None = pacing_option()


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Which replies are valid."""

    PANEL: ClassVar[str] = "Valid replies"

    expect_status: str | None = option(
        None, "Only these statuses are a success, such as 200,204,3xx (200 to 399)."
    )
    expect_header: list[str] | None = option(
        None,
        "Only with this header, 'Name: value' (parameters may follow the value) or 'Name'; may be repeated.",
    )
    expect_body: str | None = option(None, "Only this body is a success; @FILE reads it from a file.")
    expect_body_contains: list[str] | None = option(
        None, "Only with this text in the body; @FILE reads it from a file; may be repeated."
    )
    expect_body_sha256: str | None = option(
        None, "Only with this SHA-256 of the body, as sha256sum prints it."
    )


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What makes the load fail."""

    PANEL: ClassVar[str] = "Failing"

    fail_if: list[str] | None = option(
        None,
        "A condition that fails the load, such as 'p99 > 50ms', 'max of ok > 1s', 'rate < 500' or "
        "'errors > 0.1%'; may be repeated.",
    )
    strict: bool = option(False, "Exit with 3 unless the generator is shown not to be the limit.", "--strict")


@dataclass(frozen=True, slots=True)
class PairOptions:
    """A second server to compare with."""

    PANEL: ClassVar[str] = "Two servers"

    compare: str | None = option(
        None,
        "Load this URL too, in turns with the first, in many short windows, and compare both.",
        metavar="URL",
    )
    pairs: int | None = option(
        None,
        "With --compare: how many windows each of them has (80 of 0.5s; 20 where they are longer).",
        min=_LEAST_PAIRS,
        max=10_000,
    )


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """Several generators."""

    PANEL: ClassVar[str] = "Several generators"

    fleet: str | None = option(
        None,
        "Share the load among several generators: local:4, four on this machine; "
        "hosts.toml, the machines of a file, over SSH; tls://HOST:PORT or "
        "tcp://127.0.0.1:PORT, the workers of a Dask scheduler.",
        metavar="WHERE",
    )
    fleet_certificates: Path | None = certificates_option()
    on_loss: OnLoss = option(
        OnLoss.INVALID, "When a generator is lost: the load is invalid, or the account of the others is kept."
    )


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Output files."""

    PANEL: ClassVar[str] = "Output"

    json_to: str | None = option(
        None, "Write the result as JSON to this file; - is standard output.", "--json"
    )
    html_to: str | None = option(None, "Write a page with charts to this file.", "--html", metavar="OUT")
    latencies: Path | None = option(
        None, "Write each request to this CSV file while the load runs: times, end, bytes."
    )
    hdr_log: Path | None = option(None, "Write the latencies of each second as a log of HdrHistogram.")
    prometheus: Path | None = option(
        None,
        "Write metrics for Prometheus to this file, every 5 s and at the end: a *.prom for the "
        "textfile collector of its node exporter.",
        metavar="FILE",
    )


# --- TLS --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Whom to believe, who we are, and what to speak."""

    PANEL: ClassVar[str] = "TLS"

    cacert: Path | None = option(
        None, "PEM file of the authorities to trust (this machine's).", metavar="FILE"
    )
    cert: Path | None = option(
        None, "PEM file of a client certificate, for a server that asks for one.", metavar="FILE"
    )
    key: Path | None = option(None, "PEM file of its key.", metavar="FILE")
    insecure: bool = option(False, "Accept any certificate, and do not verify it.", "--insecure", "-k")
    sni: str | None = option(
        None, "The server's name, for its certificate and SNI (the URL's host).", metavar="NAME"
    )
    tls_min: TlsVersion = option(TlsVersion.TLS_1_2, "The lowest version of TLS to speak.")
    tls_resumption: bool = option(
        True,
        "Resume earlier sessions, or make a full handshake each time.",
        "--tls-resumption/--no-tls-resumption",
    )
    tls_cipher: list[TlsCipher] | None = option(
        None,
        "The only cipher suite to offer, such as TLS_AES_128_GCM_SHA256; may be repeated, "
        "the preferred one first (all that the engine has).",
        metavar="NAME",
    )


def refuse_without_tls(typed: Mapping[str, str], addresses: Sequence[Address]) -> None:
    """Refuse options of TLS where no address has it.

    *Errors*: UsageError for an option without effect.
    """
    wrong = [typed[one.name] for one in fields(TlsOptions) if one.name in typed]
    if wrong and not any(address.tls for address in addresses):
        raise UsageError(
            f"`{wrong[0]}` only works with TLS, and there is no `https://` URL",
            hint=f"load https://HOST[:PORT][/PATH], or leave out {wrong[0]}",
        )


def tls_of(options: TlsOptions) -> Tls:
    """Return what the options ask for.

    *Errors*: UsageError for options that exclude or need each other, and for a file that is none.
    """
    if options.insecure and options.cacert is not None:
        raise UsageError(
            "`--insecure` and `--cacert` exclude each other: one takes any certificate, the other verifies it"
        )
    if (options.cert is None) != (options.key is None):
        typed, missing = ("--cert", "--key") if options.key is None else ("--key", "--cert")
        raise UsageError(f"`{typed}` needs `{missing}`: a certificate and its key, each as a PEM file")
    ciphers = tuple(dict.fromkeys(options.tls_cipher or ()))
    if ciphers and all(one.version < options.tls_min for one in ciphers):
        raise UsageError(
            f"`--tls-cipher {ciphers[0]}` is of TLS {ciphers[0].version}, and the least version is "
            f"{options.tls_min}",
            hint=f"leave out --tls-min, or take a suite of TLS 1.3 such as {TlsCipher.AES_128}",
        )
    return Tls(
        verify=not options.insecure,
        ca_file=_file("--cacert", options.cacert),
        certificate_file=_file("--cert", options.cert),
        key_file=_file("--key", options.key),
        server_name=options.sni,
        least_version=options.tls_min,
        resumption=options.tls_resumption,
        ciphers=ciphers,
    )


def _file(option: str, file: Path | None) -> str | None:
    if file is None:
        return None
    if not file.is_file():
        raise UsageError(f"`{option} {file}` is no file; expected a PEM file")
    return str(file)

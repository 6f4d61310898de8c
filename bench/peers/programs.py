"""The generators: how each is told a cell, what it says it did, and what it cannot do."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from peers.cells import Cell, Measure

# Of a single request: 10,000 connections to one server wait for each other.
TIMEOUT_S = 20


class RunError(RuntimeError):
    """A run that shows nothing: replies were not clean, or not what was asked for."""


@dataclass(frozen=True)
class Order:
    """What a generator is to do: a cell, where, for how many seconds; ``folder`` for files that it needs."""

    cell: Cell
    port: int
    seconds: int
    folder: Path

    @property
    def url(self) -> str:
        """Where the load goes."""
        return f"{'https' if self.cell.tls else 'http'}://127.0.0.1:{self.port}/"

    def file(self, name: str, content: bytes | str) -> str:
        """Write a file; return its path."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def upload(self) -> str:
        """Write a file with the body of each request; return its path."""
        return self.file("upload", b"x" * self.cell.upload_bytes)


@dataclass(frozen=True)
class Program:
    """A generator.

    ``abilities``: of `rate`, `close` (a connection for each request), `upload`, `tls`, `http2` (over TLS),
    `h2c` (without). ``count``: how many replies its output says were right; null: it does not say; raises
    `RunError` when some were wrong. ``most``: connections that it can have; ``most_bytes``: of a reply.
    ``start_s``: from its start to its first request, where that is long. ``report``: a second command that
    prints what the first one wrote, when it has ended.
    """

    name: str
    command: Callable[[Order], list[str]]
    count: Callable[[str], int | None]
    abilities: frozenset[str]
    hint: str = ""
    most: int = 10_000
    most_bytes: int = 1 << 40
    start_s: float = 0.0
    environment: Mapping[str, str] = field(default_factory=dict)
    measures: frozenset[Measure] = frozenset(Measure)
    report: Callable[[Order], list[str]] | None = None

    def missing(self, path: str) -> str | None:
        """Return why it cannot be started; null: it can."""
        found = shutil.which(self.name, path=path)
        return None if found else f"not installed ({self.hint})"

    def cannot(self, cell: Cell) -> str | None:
        """Return why it cannot do that; null: it can."""
        needs = {
            "rate": (cell.rate is not None, "has no rate"),
            "close": (not cell.keep_alive, "cannot open a connection for each request"),
            "upload": (cell.upload_bytes > 0, "sends no body"),
            "tls": (cell.tls, "has no TLS"),
            "http2": (cell.http2 and cell.tls, "has no HTTP/2 with several requests at once on a connection"),
            "h2c": (cell.http2 and not cell.tls, "has no HTTP/2 without TLS"),
        }
        for ability, (is_needed, lack) in needs.items():
            if is_needed and ability not in self.abilities:
                return lack
        if cell.connections > self.most:
            return f"more than {self.most:,} connections take too much memory"
        if cell.reply_bytes > self.most_bytes:
            return "takes small replies only"
        return None if cell.measure in self.measures else "is no command that users start"


def found_in(pattern: str, text: str) -> int:
    """Return a number that the output has.

    *Errors*: `RunError`, when it does not.
    """
    found = re.search(pattern, text)
    if not found:
        raise RunError(f"says no count: {text[-300:]}")
    return int(found[1].replace(",", ""))


def refuse(pattern: str, text: str) -> None:
    """Raise `RunError` when the output has this."""
    found = re.search(f".*(?:{pattern}).*", text)
    if found:
        raise RunError(found[0].strip())


# --- wrk --------------------------------------------------------------------------------------------------


def wrk(order: Order) -> list[str]:
    cell = order.cell
    words = ["wrk", "-t1", f"-c{cell.connections}", f"-d{order.seconds}s", f"--timeout={TIMEOUT_S}s"]
    if not cell.keep_alive:
        words += ["-H", "Connection: close"]
    if cell.upload_bytes:
        script = f'wrk.method = "POST"\nwrk.body = string.rep("x", {cell.upload_bytes})\n'
        words += ["-s", order.file("upload.lua", script)]
    return [*words, order.url]


def wrk_count(text: str) -> int:
    refuse("Socket errors|Non-2xx", text)
    return found_in(r"(\d+) requests in", text)


# --- ab ---------------------------------------------------------------------------------------------------


def ab(order: Order) -> list[str]:
    cell = order.cell
    # The time sets the number to 50,000, so it goes before it.
    words = ["ab", "-q", "-t", str(order.seconds), "-n", "20000000", "-c", str(cell.connections)]
    words += ["-s", str(TIMEOUT_S), *(["-k"] if cell.keep_alive else [])]
    if cell.upload_bytes:
        words += ["-p", order.upload(), "-T", "application/octet-stream"]
    return [*words, order.url]


def ab_count(text: str) -> int:
    refuse("Non-2xx|Failed requests: +[1-9]", text)
    return found_in(r"Complete requests: +(\d+)", text)


# --- h2load -----------------------------------------------------------------------------------------------


def h2load(order: Order) -> list[str]:
    cell = order.cell
    words = ["h2load", "-t1", f"-c{cell.connections}", f"-m{cell.streams}", f"-D{order.seconds}"]
    if not cell.http2:
        words.append("--h1")
    if cell.rate:
        words.append(f"--rps={cell.rate / cell.connections:g}")
    if cell.upload_bytes:
        words += ["-d", order.upload()]
    return [*words, order.url]


def h2load_count(text: str) -> int:
    refuse(r"[1-9]\d* failed|[1-9]\d* errored|[1-9]\d* timeout", text)
    return found_in(r"(\d+) succeeded", text)


# --- hey, fortio, k6, oha: Go and Rust --------------------------------------------------------------------


def hey(order: Order) -> list[str]:
    cell = order.cell
    words = ["hey", "-z", f"{order.seconds}s", "-c", str(cell.connections), "-t", str(TIMEOUT_S)]
    if cell.rate:
        words += ["-q", f"{cell.rate / cell.connections:g}"]
    if not cell.keep_alive:
        words.append("-disable-keepalive")
    if cell.upload_bytes:
        words += ["-m", "POST", "-D", order.upload()]
    return [*words, order.url]


def hey_count(text: str) -> int:
    # Those that the end cuts short are errors too.
    counts = re.findall(r"\[(\d+)\]\s+(\d+) responses", text)
    if [status for status, _ in counts] != ["200"]:
        raise RunError(f"replies of other kinds than 200: {text[-300:]}")
    return int(counts[0][1])


def fortio(order: Order) -> list[str]:
    cell = order.cell
    rate = str(cell.rate or 0)
    words = ["fortio", "load", "-loglevel", "Error", "-qps", rate, "-c", str(cell.connections)]
    words += ["-t", f"{order.seconds}s", "-timeout", f"{TIMEOUT_S}s", "-k"]
    # Its own client has a buffer for the whole reply, at most 4 MiB, so it takes Go's for more.
    if cell.reply_bytes >= 1 << 16:
        words.append("-stdclient")
    if not cell.keep_alive:
        words.append("-keepalive=false")
    if cell.upload_bytes:
        words += ["-payload-file", order.upload()]
    return [*words, order.url]


def fortio_count(text: str) -> int:
    refuse(r"Code +(?!200)-?\d+ :", text)
    return found_in(r"Code 200 : (\d+)", text)


K6 = """
import http from 'k6/http';
const body = 'x'.repeat({upload_bytes});
export const options = {{
  discardResponseBodies: true, insecureSkipTLSVerify: true, noConnectionReuse: {closes},
  noVUConnectionReuse: {closes}, scenarios: {{ load: {scenario} }},
}};
export default () => {{ {call}; }};
export const handleSummary = ({{ metrics }}) => ({{ stdout: JSON.stringify({{
  sent: metrics.http_reqs.values.count, failed: metrics.http_req_failed.values.passes,
}}) }});
"""


def k6(order: Order) -> list[str]:
    cell = order.cell
    scenario: Mapping[str, object] = {"executor": "constant-vus", "vus": cell.connections}
    if cell.rate:
        scenario = {
            "executor": "constant-arrival-rate",
            "rate": cell.rate,
            "preAllocatedVUs": cell.connections,
        }
    scenario = {**scenario, "duration": f"{order.seconds}s", "gracefulStop": "0s"}
    script = K6.format(
        upload_bytes=cell.upload_bytes,
        closes=json.dumps(not cell.keep_alive),
        scenario=json.dumps(scenario),
        call=f"http.post('{order.url}', body)" if cell.upload_bytes else f"http.get('{order.url}')",
    )
    words = ["k6", "run", "--quiet", "--no-usage-report", "--no-color", "--address", "127.0.0.1:0"]
    return [*words, order.file("load.js", script)]


def k6_count(text: str) -> int:
    refuse(r'"failed":[1-9]', text)
    return found_in(r'"sent":(\d+)', text)


def oha(order: Order) -> list[str]:
    cell = order.cell
    words = ["oha", "--no-tui", "-z", f"{order.seconds}s", "-c", str(cell.connections), "--insecure"]
    if cell.http2:
        words += ["--http2", "-p", str(cell.streams)]
    if cell.rate:
        words += ["-q", str(cell.rate)]
    if not cell.keep_alive:
        words.append("--disable-keepalive")
    if cell.upload_bytes:
        words += ["-m", "POST", "-D", order.upload()]
    return [*words, order.url]


def oha_count(text: str) -> int:
    refuse(r"\[(?!200)\d{3}\] [1-9]\d* responses", text)
    return found_in(r"\[200\] (\d+) responses", text)


# --- autocannon -------------------------------------------------------------------------------------------


def autocannon(order: Order) -> list[str]:
    cell = order.cell
    words = ["autocannon", "-j", "-n", "-c", str(cell.connections), "-d", str(order.seconds)]
    words += ["-t", str(TIMEOUT_S)]
    if cell.rate:
        words += ["-R", str(cell.rate)]
    if not cell.keep_alive:
        words += ["-H", "Connection=close"]
    if cell.upload_bytes:
        words += ["-m", "POST", "-i", order.upload()]
    return [*words, order.url]


def autocannon_count(text: str) -> int:
    refuse(r'"(?:errors|timeouts|non2xx)":[1-9]\d*', text)
    return found_in(r'"2xx":(\d+)', text)


# --- vegeta, bombardier, siege ----------------------------------------------------------------------------


def vegeta(order: Order) -> list[str]:
    cell, most = order.cell, str(order.cell.connections)
    words = ["vegeta", "attack", "-duration", f"{order.seconds}s", "-timeout", f"{TIMEOUT_S}s", "-insecure"]
    words += ["-rate", str(cell.rate or 0), "-connections", most, "-max-workers", most]
    # The server agrees on HTTP/2 with whoever offers it. Of bodies nothing is kept.
    words += ["-http2=false", "-max-body", "0", f"-keepalive={str(cell.keep_alive).lower()}"]
    if not cell.rate:
        words += ["-workers", most]
    if cell.upload_bytes:
        words += ["-body", order.upload()]
    target = f"{'POST' if cell.upload_bytes else 'GET'} {order.url}\n"
    return [*words, "-targets", order.file("targets", target), "-output", str(order.folder / "results")]


def vegeta_report(order: Order) -> list[str]:
    return ["vegeta", "report", "-type=json", str(order.folder / "results")]


def vegeta_count(text: str) -> int:
    refuse(r'"status_codes":\{[^}]*"(?!200")\d+"', text)
    return found_in(r'"200":(\d+)', text)


def bombardier(order: Order) -> list[str]:
    cell = order.cell
    words = ["bombardier", "-c", str(cell.connections), "-d", f"{order.seconds}s", "-t", f"{TIMEOUT_S}s"]
    words += ["--insecure", "--print", "result", "--format", "json"]
    if cell.rate:
        words += ["-r", str(cell.rate)]
    if not cell.keep_alive:
        # Its other client keeps connections all the same.
        words += ["--http1", "--disableKeepAlives"]
    if cell.upload_bytes:
        words += ["-m", "POST", "-f", order.upload()]
    return [*words, order.url]


def bombardier_count(text: str) -> int:
    refuse(r'"(?:req[1345]xx|others)":[1-9]\d*', text)
    return found_in(r'"req2xx":(\d+)', text)


SIEGE = """
verbose = false
quiet = true
color = off
json_output = true
logging = false
show-logfile = false
parser = false
benchmark = true
limit = 100000
connection = {connection}
timeout = {timeout_s}
"""


def siege(order: Order) -> list[str]:
    cell = order.cell
    connection = "keep-alive" if cell.keep_alive else "close"
    settings = order.file("settings", SIEGE.format(connection=connection, timeout_s=TIMEOUT_S))
    words = ["siege", "-R", settings, "-b", "-c", str(cell.connections), "-t", f"{order.seconds}S"]
    return [*words, f"{order.url} POST <{order.upload()}" if cell.upload_bytes else order.url]


def siege_count(text: str) -> int:
    refuse(r'"failed_transactions":\s*[1-9]', text)
    return found_in(r'"successful_transactions":\s*(\d+)', text)


_ALL = frozenset({"rate", "close", "upload", "tls"})

PEERS = (
    Program("wrk", wrk, wrk_count, _ALL - {"rate"}, "apt install wrk"),
    Program("ab", ab, ab_count, _ALL - {"rate"}, "apt install apache2-utils"),
    Program(
        "h2load", h2load, h2load_count, _ALL - {"close"} | {"http2", "h2c"}, "apt install nghttp2-client"
    ),
    Program("hey", hey, hey_count, _ALL, "go install github.com/rakyll/hey@latest"),
    Program(
        "autocannon",
        autocannon,
        autocannon_count,
        _ALL,
        "npm install --global autocannon",
        start_s=1.0,
        environment={"NODE_TLS_REJECT_UNAUTHORIZED": "0", "NODE_NO_WARNINGS": "1"},
    ),
    Program("oha", oha, oha_count, _ALL | {"http2", "h2c"}, "cargo install oha"),
    Program("fortio", fortio, fortio_count, _ALL, "go install fortio.org/fortio@latest"),
    # Some 100 KiB and more for each.
    Program("k6", k6, k6_count, _ALL, "go install go.k6.io/k6@latest", most=1_000, start_s=1.5),
    Program(
        "vegeta",
        vegeta,
        vegeta_count,
        _ALL,
        "go install github.com/tsenart/vegeta/v12@v12.12.0",
        report=vegeta_report,
    ),
    Program(
        "bombardier",
        bombardier,
        bombardier_count,
        _ALL,
        "go install github.com/codesenberg/bombardier@v1.2.6",
    ),
    # A thread for each connection. Its settings lie where it is started, and not in the user's folder.
    Program(
        "siege",
        siege,
        siege_count,
        _ALL - {"rate"},
        "apt install siege",
        most=1_000,
        environment={"HOME": "."},
    ),
)

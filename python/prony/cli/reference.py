"""``prony reference``: the reference server on its own."""

import json
import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from prony.cli.options import MAX_THREADS, duration_of, optional, wait_of
from prony.cli.talk import say, show
from prony.errors import UsageError
from prony.model.shapes import Json
from prony.units import parse_bytes

EPILOG = """\
Examples:

  prony reference --port 8000                              a plain reply, as fast as possible

  prony reference --delay 100ms                            a remote API

  prony reference --delay 5ms --distribution exponential   service times that vary

  prony reference --work 100us --threads 2                 100 us of CPU a request

  prony reference --error-every 20                         5 % of 503

  prony reference --stall-after 3s --stall-for 2s          a freeze

  prony reference --tls-cert server.pem --tls-key server.key    TLS
"""


FRAMINGS = ("content_length", "chunked", "close_delimited")


def reference(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    delay: Annotated[str, typer.Option(help="Service time before each reply, such as 5ms.")] = "0ms",
    distribution: Annotated[
        str, typer.Option(help="How the delay varies: fixed or exponential (then --delay is the mean).")
    ] = "fixed",
    work: Annotated[str, typer.Option(help="CPU time that each request takes, such as 100us.")] = "0ms",
    body: Annotated[str, typer.Option(help="Size of the body, such as 64KiB.")] = "13B",
    framing: Annotated[
        str, typer.Option(help="content_length, chunked or close_delimited.")
    ] = "content_length",
    error_every: Annotated[
        int | None, typer.Option(min=1, help="Answer every n-th request with 503.")
    ] = None,
    silent_every: Annotated[int | None, typer.Option(min=1, help="Never answer every n-th request.")] = None,
    close_after: Annotated[
        int | None, typer.Option(min=1, help="Close each connection after n replies.")
    ] = None,
    reset_after: Annotated[
        int | None, typer.Option(min=1, help="Reset each connection within its n-th reply.")
    ] = None,
    stall_after: Annotated[str | None, typer.Option(help="Freeze this long after the first request.")] = None,
    stall_for: Annotated[str | None, typer.Option(help="How long the freeze lasts.")] = None,
    threads: Annotated[int, typer.Option(min=1, max=MAX_THREADS, help="Number of serving threads.")] = 1,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Speak TLS with this certificate, a PEM file.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM file of its key.")] = None,
) -> None:
    """Start a server with exactly known delays, stalls and errors; Ctrl-C prints its counts."""
    config: Json = {
        "port": port,
        "threads": threads,
        "framing": _framing(framing),
        "body_bytes": _size(body),
        "delay": _delay(delay, distribution),
        "work_ns": wait_of("--work", work),
        "error_every": error_every,
        "silent_every": silent_every,
        "close_after": close_after,
        "reset_after": reset_after,
        "stall": _stall(stall_after, stall_for),
        "tls": _tls(tls_cert, tls_key),
    }
    _serve(config)


def _serve(config: Json) -> None:
    from prony._engine import EngineError, ReferenceServer

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        server = ReferenceServer(json.dumps(config))
    except EngineError as error:
        raise UsageError(f"the reference server did not start: {error}") from None
    with server:
        scheme = "https" if config["tls"] else "http"
        say(f"listening on {scheme}://127.0.0.1:{server.port}")
        ended.wait()
        show(json.dumps(json.loads(server.counts()), indent=2))


def _framing(text: str) -> str:
    if text not in FRAMINGS:
        raise UsageError(f"`--framing {text}`: expected {', '.join(f'`{name}`' for name in FRAMINGS)}")
    return text


def _size(text: str) -> int:
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UsageError(f"`--body`: {error}") from None


def _delay(text: str, distribution: str) -> Json:
    delay_ns = wait_of("--delay", text)
    match distribution:
        case "fixed":
            return {"kind": "fixed", "ns": delay_ns} if delay_ns else {"kind": "none"}
        case "exponential":
            return {"kind": "exponential", "mean_ns": delay_ns, "seed": 1}
        case _:
            raise UsageError(f"`--distribution {distribution}`: expected `fixed` or `exponential`")


def _tls(certificate: Path | None, key: Path | None) -> Json | None:
    if (certificate is None) != (key is None):
        raise UsageError("`--tls-cert` and `--tls-key` only work together")
    if certificate is None or key is None:
        return None
    return {"certificate": _text("--tls-cert", certificate), "key": _text("--tls-key", key)}


def _text(option: str, file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, ValueError) as error:
        raise UsageError(f"`{option} {file}` cannot be read: {error}") from None


def _stall(after: str | None, length: str | None) -> Json | None:
    after_ns, for_ns = (
        optional(wait_of, "--stall-after", after),
        optional(duration_of, "--stall-for", length),
    )
    if (after_ns is None) != (for_ns is None):
        raise UsageError("`--stall-after` and `--stall-for` only work together")
    return None if after_ns is None else {"after_ns": after_ns, "for_ns": for_ns}

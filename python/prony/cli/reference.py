"""``prony reference``: the reference server on its own."""

import json
import signal
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from prony.cli.flat import flattened, option
from prony.cli.options import MAX_THREADS, duration_of, optional, read_option, wait_of
from prony.cli.talk import say, show
from prony.core.errors import ExitCode, UsageError
from prony.core.units import parse_bytes
from prony.model.json_codec import Json

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


class DelayKind(StrEnum):
    """How the delay varies."""

    FIXED = "fixed"
    EXPONENTIAL = "exponential"


class Framing(StrEnum):
    """How a reply says where it ends."""

    CONTENT_LENGTH = "content_length"
    CHUNKED = "chunked"
    CLOSE_DELIMITED = "close_delimited"


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """What the server does."""

    port: int = option(8000, "The port; 0 takes a free one.", min=0, max=65535)
    delay: str = option("0ms", "Service time before each reply, such as 5ms.")
    distribution: DelayKind = option(
        DelayKind.FIXED, "How the delay varies; if exponential, --delay is the mean."
    )
    work: str = option("0ms", "CPU time that each request takes, such as 100us.")
    body: str = option("13B", "Size of the body, such as 64KiB.")
    framing: Framing = option(Framing.CONTENT_LENGTH, "How a reply says where it ends.")
    error_every: int | None = option(None, "Answer every n-th request with 503.", min=1)
    silent_every: int | None = option(None, "Never answer every n-th request.", min=1)
    close_after: int | None = option(None, "Close each connection after n replies.", min=1)
    reset_after: int | None = option(None, "Reset each connection within its n-th reply.", min=1)
    stall_after: str | None = option(None, "Freeze this long after the first request.")
    stall_for: str | None = option(None, "How long the freeze lasts.")
    threads: int = option(1, "Number of serving threads.", min=1, max=MAX_THREADS)
    tls_cert: Path | None = option(None, "Speak TLS with this certificate, a PEM file.", metavar="FILE")
    tls_key: Path | None = option(None, "PEM file of its key.", metavar="FILE")


@flattened
def reference(asked: ReferenceOptions) -> int:
    """Start a server with exactly known delays, stalls and errors; Ctrl-C prints its counts."""
    config: Json = {
        "port": asked.port,
        "threads": asked.threads,
        "framing": asked.framing,
        "body_bytes": read_option("--body", asked.body, parse_bytes),
        "delay": _delay(asked.delay, asked.distribution),
        "work_ns": wait_of("--work", asked.work),
        "error_every": asked.error_every,
        "silent_every": asked.silent_every,
        "close_after": asked.close_after,
        "reset_after": asked.reset_after,
        "stall": _stall(asked.stall_after, asked.stall_for),
        "tls": _tls(asked.tls_cert, asked.tls_key),
    }
    _serve(config)
    return ExitCode.DONE


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


def _delay(text: str, distribution: DelayKind) -> Json:
    delay_ns = wait_of("--delay", text)
    if distribution is DelayKind.EXPONENTIAL:
        return {"kind": "exponential", "mean_ns": delay_ns, "seed": 1}
    return {"kind": "fixed", "ns": delay_ns} if delay_ns else {"kind": "none"}


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
    after_ns = optional(wait_of, "--stall-after", after)
    for_ns = optional(duration_of, "--stall-for", length)
    if (after_ns is None) != (for_ns is None):
        raise UsageError("`--stall-after` and `--stall-for` only work together")
    return None if after_ns is None else {"after_ns": after_ns, "for_ns": for_ns}

"""Options that several commands share: text in, validated values out, one clear message otherwise.
What a shell completes is read without the rest of the catalogue.

>>> servers_to("gunicorn,wait")
['gunicorn,waitress']
"""

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from prony.catalog import DATA
from prony.cli.flat import option
from prony.cli.talk import show, show_page
from prony.core.atomic_files import write_whole
from prony.core.errors import UsageError
from prony.core.units import DAY_NS, MIB, parse_bytes, parse_duration, parse_rate
from prony.model.exchange import (
    Request,
    as_sent,
    is_header_name,
    is_header_value,
    is_method,
    is_path,
    status_ranges,
)
from prony.model.workload import MAX_CONNECTIONS, MAX_RATE_PER_S, ConnectionStage, Pacing, RateStage

if TYPE_CHECKING:
    from prony.report.document import Document

certificates_option: Callable[[], Path | None] = partial(
    option, None, "With tls://: the folder that `prony fleet certificates DIR` made.", metavar="DIR"
)
timeout_option = partial(option, "10s", "How long a request may take.")
run_as_option: Callable[[], str | None] = partial(
    option, None, "The user that servers run as, when Prony is root."
)
share_cpus_option = partial(
    option, False, "Let the server use all CPUs, the generator's too.", "--share-cpus"
)
trust_build_option = partial(option, False, "Build packages outside of the sandbox.", "--trust-build")
pacing_option: Callable[[], Pacing | None] = partial(
    option,
    None,
    "Open loop: how to wait for the next send: sleep and spin (precise, the default), or only sleep "
    "(economical, when CPUs are shared).",
)


def pacing_of(wish: Pacing | None, *, shares_cpus: bool) -> Pacing:
    """Return the pacing of a whole study.

    *Errors*: UsageError for precise pacing on the server's CPUs: what spins there slows the server.
    """
    if wish is Pacing.PRECISE and shares_cpus:
        raise UsageError(
            "`--pacing precise` spins on the generator's CPUs, which `--share-cpus` gives to the server too",
            hint="leave out one of them",
        )
    return Pacing.usual(shares_cpus=shares_cpus) if wish is None else wish


def _named(folder: str) -> list[str]:
    return sorted(path.stem for path in Path(DATA, folder).glob("*.toml"))


def server_to(incomplete: str) -> list[str]:
    """Return the servers whose names begin so."""
    return [name for name in _named("servers") if name.startswith(incomplete)]


def servers_to(incomplete: str) -> list[str]:
    """Return lists of servers that go on so: the last name is completed."""
    return _in_list(incomplete, _named("servers"))


def studies_to(incomplete: str) -> list[str]:
    """Return the studies whose names begin so."""
    return [name for name in _named("studies") if name.startswith(incomplete)]


def engines_to(incomplete: str) -> list[str]:
    """Return lists of generators that go on so."""
    from prony.engine.registry import ENGINES

    return _in_list(incomplete, sorted(ENGINES))


def _in_list(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


Parsed = TypeVar("Parsed")

# Archive and engine store it as a signed whole number.
MAX_SEED = 2**63 - 1
# More than any machine's CPUs; each thread costs memory before the first request.
MAX_THREADS = 1024


def read_option(option: str, text: str, parse: Callable[[str], Parsed]) -> Parsed:
    """Return what a text says; UsageError names the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(f"`{option}`: {error}") from None


def memory_of(option: str, text: str) -> int:
    """Return a memory limit in bytes, at least 1 MiB: no server starts with less.

    *Errors*: UsageError naming the option.
    """
    try:
        value = parse_bytes(text)
    except ValueError as error:
        raise UsageError(f"`{option} {text}`: {str(error).partition('; ')[2]}") from None
    if value < MIB:
        raise UsageError(f"`{option} {text}`: expected at least `1M`, such as `512M`")
    return value


def duration_of(option: str, text: str) -> int:
    """Return nanoseconds, at least one; UsageError names the option."""
    value = wait_of(option, text)
    if value == 0:
        raise UsageError(f"`{option} {text}`: expected more than zero, such as `250ms`, `30s`, `1m30s`")
    return value


def wait_of(option: str, text: str) -> int:
    """Return nanoseconds, perhaps zero; UsageError names the option."""
    value = read_option(option, text, parse_duration)
    if value > DAY_NS:
        raise UsageError(f"`{option} {text}`: expected at most a day, such as `24h`")
    return value


def rate_of(option: str, text: str) -> float:
    """Return requests per second; UsageError names the option."""
    value = read_option(option, text, parse_rate)
    if value > MAX_RATE_PER_S:
        raise UsageError(f"`{option} {text}`: expected at most {MAX_RATE_PER_S:,.0f} requests per second")
    return value


def stages_of(option: str, text: str) -> tuple[RateStage, ...] | tuple[ConnectionStage, ...]:
    """Return the stages in a list: steps, and ramps from one size of the load to another.

    Rates of an open loop, such as ``30s:100,2m:100-1000``, or connections of a closed one, such as
    ``30s:10c,2m:10-100c``.

    *Errors*: UsageError naming the option.
    """
    parts = [part.strip() for part in text.split(",")]
    counted = [part for part in parts if part.endswith(_CONNECTIONS)]
    if not counted:
        return tuple(_rate_stage(option, part) for part in parts)
    if len(counted) < len(parts):
        rate = next(part for part in parts if part not in counted)
        raise UsageError(
            f"`{option}`: `{counted[0]}` sets connections and `{rate}` a rate; expected stages of one kind",
            hint="connections (closed loop): 30s:10c,2m:10-100c; rates (open loop): 30s:100,2m:100-1k",
        )
    return tuple(_connection_stage(option, part) for part in parts)


# Behind the last number of a stage: it counts connections.
_CONNECTIONS = "c"


def _rate_stage(option: str, text: str) -> RateStage:
    duration_ns, first, last = _stage(option, text)
    low = _rate_or_none(option, first)
    return RateStage(duration_ns, low, low if last is None else _rate_or_none(option, last))


def _connection_stage(option: str, text: str) -> ConnectionStage:
    duration_ns, first, last = _stage(option, text)
    low = _count_or_none(option, first)
    return ConnectionStage(duration_ns, low, low if last is None else _count_or_none(option, last))


def _stage(option: str, text: str) -> tuple[int, str, str | None]:
    """Return how long a stage is, and the sizes of the load between which it changes; None: it stays."""
    duration, colon, sizes = text.partition(":")
    first, dash, last = sizes.partition("-")
    if not colon or not first or (dash and not last):
        raise UsageError(
            f"`{option}`: `{text}` is no stage; expected a duration and a rate, such as `30s:100`, or a ramp "
            "from one rate to another, such as `2m:100-1k`; or connections, such as `30s:10c`, `2m:10-100c`"
        )
    return duration_of(option, duration), first, last if dash else None


def _count_or_none(option: str, text: str) -> int:
    digits = text.strip().removesuffix(_CONNECTIONS)
    if not re.fullmatch(r"[0-9]{1,18}", digits):
        raise UsageError(f"`{option}`: `{text}` is no number of connections; expected such as `10c`")
    if int(digits) > MAX_CONNECTIONS:
        raise UsageError(f"`{option}`: `{text}`: expected at most {MAX_CONNECTIONS:,} connections")
    return int(digits)


def _rate_or_none(option: str, text: str) -> float:
    return 0.0 if text.strip() == "0" else rate_of(option, text)


def optional(parse: Callable[[str, str], Parsed], option: str, text: str | None) -> Parsed | None:
    """Return the parsed value, or None when the option is absent."""
    return None if text is None else parse(option, text)


def connections_of(option: str, text: str) -> tuple[int, ...]:
    """Return the counts in a list such as ``10,100``."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"0*[1-9][0-9]{0,17}", part) for part in parts):
        raise UsageError(f"`{option} {text}`: expected one or more counts, such as `100` or `10,100,1000`")
    counts = tuple(int(part) for part in parts)
    if max(counts) > MAX_CONNECTIONS:
        raise UsageError(f"`{option} {text}`: expected at most {MAX_CONNECTIONS:,}")
    return tuple(dict.fromkeys(counts))


def header_of(text: str) -> tuple[str, str]:
    """Return name and value of ``Name: value``."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or not is_header_value(text):
        raise UsageError(f"`-H {text!r}`: expected `Name: value` on one line")
    if not is_header_name(name.strip()):
        raise UsageError(f"`-H {name.strip()}: ...`: expected a header's name of letters, digits and `-`")
    return name.strip(), value.strip()


def statuses_of(option: str, text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of statuses in a list such as ``200,204,3xx``, both ends included.

    *Errors*: UsageError naming the option.
    """
    ranges = status_ranges(text)
    if ranges is None:
        raise UsageError(
            f"`{option} {text}`: expected statuses from 100 to 999 and classes of them, such as `200`, "
            "`200,204` or `2xx,304`"
        )
    return ranges


def expected_header_of(text: str) -> tuple[str, str | None]:
    """Return name and value of ``Name: value``; of ``Name`` alone the value is None: any.

    *Errors*: UsageError.
    """
    name, colon, value = text.partition(":")
    if not is_header_name(name.strip()) or not is_header_value(text):
        raise UsageError(f"`--expect-header {text!r}`: expected `Name: value` or `Name`, on one line")
    return name.strip(), value.strip() if colon else None


def sha256_of(option: str, text: str) -> str:
    """Return a SHA-256 in lower case; UsageError names the option."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise UsageError(f"`{option} {text}`: expected 64 hexadecimal digits, as `sha256sum` prints them")
    return text.lower()


def body_of(option: str, text: str | None) -> bytes | None:
    """Return a body as typed, or the content of a file for ``@path``; UsageError names the option."""
    if text is None or not text.startswith("@"):
        return None if text is None else text.encode()
    return given_content(f"{option} {text}", Path(text[1:]))


def given_content(typed: str, path: Path) -> bytes:
    """Return the content of a file that an option names, as `given_file`."""
    with given_file(typed, path) as file:
        return file.read()


_STDIN = Path("/dev/stdin")


def given_file(typed: str, path: Path) -> BinaryIO:
    """Open a file that an option names, or standard input for ``-``; ``typed``: the option with its value.

    A pipe is read only as the shell's own, such as `<(command)`: any other may never have a writer.

    *Errors*: UsageError for a file that cannot be read, or that has no end.
    """
    place = _STDIN if str(path) == "-" else path
    try:
        kind, is_own = place.stat().st_mode, place == _STDIN or place.parent == Path("/dev/fd")
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or is_own) or (place == _STDIN and os.isatty(0)):
            what = "a terminal" if place == _STDIN else "a pipe or a device"
            raise UsageError(f"`{typed}`: `{path}` is {what}; expected an ordinary file")
        if stat.S_ISREG(kind) and place.resolve().is_relative_to("/proc"):
            # Some have no end, and some cannot be read.
            raise UsageError(f"`{typed}`: `{path}` is the kernel's; expected an ordinary file")
        return place.open("rb")
    except OSError as error:
        raise UsageError(f"`{typed}`: cannot read `{path}`: {error.strerror}") from None


def path_of(text: str) -> str:
    """Return the path of a request.

    *Errors*: UsageError for what is none.
    """
    if not is_path(text):
        raise UsageError(
            f"`{text}` is not a path; expected one that starts with `/`, without blanks (`%20` is one)"
        )
    return as_sent(text)


def make_request(
    method: str, path: str, headers: Sequence[str], body: str | None, keep_alive: bool
) -> Request:
    """Return the request that ``-m``, ``-H``, ``--body`` and ``--no-keepalive`` describe, for this path."""
    if not is_method(method):
        raise UsageError(f"`-m {method}`: expected a method such as `GET` or `POST`")
    return Request(
        method.upper(),
        path_of(path),
        tuple(header_of(text) for text in headers),
        body_of("--body", body),
        keep_alive,
    )


def check_output(where: str | None) -> None:
    """Refuse a target that `write_output` cannot write before the measurement, not after it.

    *Errors*: UsageError naming the target.
    """
    if where is None or where == "-":
        return
    path = Path(where)
    number = _why_not_writable(path)
    if number:
        raise UsageError(
            f"cannot write `{where}`: {os.strerror(number)}",
            hint="name a file in a folder that you may write to; with --json also - for standard output",
        )


def _why_not_writable(path: Path) -> int:
    if path.is_dir():
        return errno.EISDIR
    if not path.parent.exists():
        return errno.ENOENT
    if not path.parent.is_dir():
        return errno.ENOTDIR
    return 0 if os.access(path.parent, os.W_OK | os.X_OK) else errno.EACCES


def write_output(text: str, where: str) -> None:
    """Write ``text`` to standard output for ``-``, else to a new or replaced file, whole or not at all.

    A device or a pipe is written to, and never replaced.

    *Errors*: UsageError for a target that cannot be written, or a pipe that nobody reads.
    """
    if where == "-":
        show(text)
        return
    path = Path(where)
    try:
        if path.exists() and not path.is_file():
            _pour(text, path)
            return
        write_whole(path, text + "\n")
    except OSError as error:
        raise UsageError(f"cannot write `{where}`: {error.strerror}") from None


def write_answer(value: object, document: "Callable[[], Document]", json_to: str | None) -> None:
    """Print a document, but beside JSON on standard output; write ``value`` as JSON to ``json_to``, if it is
    not None.
    """
    from prony.report.formats.as_json import document_json
    from prony.report.formats.terminal import TerminalReporter

    if json_to != "-":
        TerminalReporter().write_report(document())
    if json_to is not None:
        write_output(json.dumps(document_json(value), indent=2), json_to)


def write_html(page: str, where: str) -> None:
    """Write a page as `write_output` does; it is UTF-8 whatever the encoding of standard output is.

    *Errors*: UsageError.
    """
    if where == "-":
        show_page(page.rstrip("\n"))
    else:
        write_output(page.rstrip("\n"), where)


def _pour(text: str, path: Path) -> None:
    # Without O_NONBLOCK a pipe that nobody reads would wait for its reader.
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text + "\n")

"""What generators on other machines say, of a fleet or for a target, read strictly: who says what is no
answer of Prony's is named. Pure.

Each message has exactly its own fields, of their kinds; a load has one address, and names no file of this
machine.

>>> read_answer("far-1", b'{"recording": {"format": 1}}')
'{"format": 1}'
>>> read_answer("far-1", b'{"error": "no server"}')
Traceback (most recent call last):
prony.core.errors.EngineError: far-1: no server

>>> read_message({"cancel": 3})
Cancel(cancel=3)
>>> read_message({"cancel": 3, "too": 4})
Traceback (most recent call last):
prony.core.errors.EngineError: the target sent what is no message of Prony's: fields cancel, too

>>> text_of({"target": {"host": "192.0.2.1"}}) is None
True
"""

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum, auto
from pathlib import Path

from prony.core.errors import EngineError
from prony.core.lines import json_object
from prony.core.safe_text import shortened
from prony.core.units import GIB, MIB, SECOND_NS, format_bytes
from prony.model.facts import Fingerprint
from prony.model.json_codec import Json, ShapeError, decode


class _Phase(StrEnum):
    OPENING = auto()
    WARMUP = auto()
    WINDOW = auto()
    DRAIN = auto()


PHASES = tuple(map(str, _Phase))
"""Of a load, in their order."""


class _Bound(StrEnum):
    ASKED = auto()
    TIME_OUT = auto()
    DESCRIPTORS = auto()
    PORTS = auto()
    MEMORY = auto()


@dataclass(frozen=True, slots=True)
class _Limit:
    connections: int
    by: _Bound


@dataclass(frozen=True, slots=True)
class _Started:
    limit: _Limit | None
    machine: _Limit | None


@dataclass(frozen=True, slots=True)
class _Waiting:
    generators: int


@dataclass(frozen=True, slots=True)
class _LastSecond:
    second: int
    ok: int
    p50_ns: int
    p99_ns: int | None
    max_ns: int


@dataclass(frozen=True, slots=True)
class _Progress:
    phase: _Phase
    elapsed_ns: int
    ok: int
    failed: int
    in_flight: int
    queued: int
    connected: int
    last_second: _LastSecond | None


@dataclass(frozen=True, slots=True)
class _Moment:
    monotonic_ns: int


# Of a load, with what each says: any other, as a result, would pass for a line of who leads the load.
_EVENTS: Mapping[str, type] = {
    **{"started": _Started, "waiting": _Waiting, "progress": _Progress},
    **{"window_open": _Moment, "window_close": _Moment},
}


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What a machine that sends load says of itself: its Prony and architecture, and what is kept of it."""

    version: str
    machine: str
    host: str
    cpus: int
    pid: int
    is_root: bool
    fingerprint: Fingerprint


def read_facts(name: str, said: object) -> MachineFacts:
    """Return the facts of a generator's machine.

    *Errors*: EngineError where they are none.
    """
    try:
        return decode(MachineFacts, said, "facts")
    except ShapeError as error:
        raise _no_answer(name, shortened(str(error), 200)) from error


def read_answer(name: str, said: bytes) -> str:
    """Return the Recording in a generator's answer, as JSON.

    *Errors*: EngineError when the load failed there, or this is no answer.
    """
    try:
        found = json_object(said)
    except ValueError:
        raise _no_answer(name, repr(said[:60])) from None
    return json.dumps(recording_in(name, found))


def recording_in(name: str, answer: Json) -> Json:
    """Return the Recording in an answer.

    *Errors*: EngineError when the load failed there, or this is no answer.
    """
    match answer:
        case {"error": str(words)}:
            raise EngineError(f"{name}: {shortened(words, 400)}")
        case {"recording": dict(recording)}:
            return recording
    raise _no_answer(name, f"fields {shortened(', '.join(answer)) or 'none'}")


def _no_answer(name: str, why: str) -> EngineError:
    return EngineError(
        f"generator `{name}` sent what is no answer of Prony's: {why}", hint="see what runs there"
    )


def progress_in(beat: Json) -> Json | None:
    """Return the progress of a beat; None where there is none that can be added up."""
    found = event_in({"event": beat.get("progress")})
    return found if found and found["event"] == "progress" else None


def event_in(beat: Json) -> Json | None:
    """Return the event of a beat; None where there is none of a known kind, or with a value that is none."""
    match beat.get("event"):
        case {"event": str(kind), **rest} if kind in _EVENTS and _is(_EVENTS[kind], rest):
            return dict(beat["event"])
    return None


def _is(kind: type, found: object) -> bool:
    try:
        decode(kind, found, "event")
    except ShapeError:
        return False
    return isinstance(found, dict) and found.keys() <= {field.name for field in fields(kind)}


# --- what the other side of `prony run --target` may say to this one --------------------------------------


MOST_LINE_BYTES = 2 * MIB
"""Read as JSON it takes some tens of MiB at most."""
MOST_ARCHIVE_BYTES = 4 * GIB
MOST_MESSAGES = 20_000
"""In a run; a load takes two at most."""
_LONGEST_NS = 7 * 24 * 3600 * SECOND_NS
_MOST_THREADS = 1024

_OF_SPEC = {"target", "workload", "threads", "cpus", "pacing", "ceiling_per_s"}
_OF_TARGET = {"host", "port", "socket", "wire", "tls"}
_FILES = ("certificate_file", "key_file")


@dataclass(frozen=True, slots=True)
class Hello:
    """The version of Prony there, and the address at which servers there will take the load."""

    hello: str
    listen: str


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """A load to be sent from here; ``authority``: the certificate that its server is verified by."""

    load: int
    spec: Mapping[str, object]
    limit_ns: int
    authority: str | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """The load of this number is to end."""

    cancel: int


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The run has ended with this status; its archive of so many bytes follows."""

    ended: int
    said: str
    bytes: int


Message = Hello | LoadOrder | Cancel | RunEnd
_KINDS: tuple[type[Message], ...] = (Hello, LoadOrder, Cancel, RunEnd)


def read_message(found: Json) -> Message:
    """Return the message that a JSON object is.

    *Errors*: EngineError for anything else.
    """
    kind = next((one for one in _KINDS if {field.name for field in fields(one)} == found.keys()), None)
    if kind is None:
        raise _no_message(f"fields {shortened(', '.join(found))}")
    try:
        message = decode(kind, found, "message")
    except ShapeError as error:
        raise _no_message(shortened(str(error), 200)) from error
    if isinstance(message, RunEnd):
        _check_end(message)
    return message


def _no_message(why: str) -> EngineError:
    return EngineError(f"the target sent what is no message of Prony's: {why}")


def _check_end(message: RunEnd) -> None:
    if not 0 <= message.ended <= 255 or message.bytes < 0:
        raise _no_message("an end with a status or a length that there is not")
    if message.bytes > MOST_ARCHIVE_BYTES:
        raise EngineError(
            f"the target announced an archive of {format_bytes(message.bytes)}; expected at most "
            f"{format_bytes(MOST_ARCHIVE_BYTES)}"
        )


def checked_spec(order: LoadOrder, listen: str, taken: Collection[int]) -> Json:
    """Return the specification of a load that may be sent from here: over TCP, to ``listen`` alone,
    and to none of the ports ``taken`` by other programs.

    *Errors*: EngineError for any other.
    """
    spec = _object(order.spec, _OF_SPEC, "spec")
    target = _object(spec.get("target"), _OF_TARGET, "spec.target")
    if target.get("host") != listen or target.get("socket", "tcp") != "tcp":
        raise EngineError(f"loads may go only to `{listen}`, the address that was named")
    port = target.get("port")
    if not isinstance(port, int):
        raise EngineError("`spec.target.port`: expected a whole number")
    if port in taken:
        raise EngineError(f"port {port} of `{listen}` is another program's")
    _check_tls(target.get("tls"), order.authority)
    _check_workload(spec.get("workload"))
    threads = spec.get("threads")
    if not isinstance(threads, int) or not 1 <= threads <= _MOST_THREADS:
        raise EngineError(f"`spec.threads`: expected 1 to {_MOST_THREADS}")
    if not 0 < order.limit_ns <= _LONGEST_NS:
        raise EngineError("`limit_ns`: expected at most a week")
    return {**spec, "cpus": None}


def _check_workload(workload: object) -> None:
    """Refuse requests from a file, and source addresses: those of this machine are no target's."""
    if isinstance(workload, dict) and workload.get("groups"):
        raise EngineError("`spec.workload.groups`: a target may name no source addresses of this machine")
    mix = workload.get("mix") if isinstance(workload, dict) else None
    if isinstance(mix, dict) and mix.get("file") is not None:
        raise EngineError("`spec.workload.mix.file`: a target may name no file of this machine")


def _check_tls(tls: object, authority: str | None) -> None:
    """Refuse files of this machine: an authority's text comes with the order."""
    if tls is None and authority is None:
        return
    if not isinstance(tls, dict):
        raise EngineError("`spec.target.tls`: expected an object")
    named = [name for name in _FILES if tls.get(name) is not None]
    if tls.get("ca_file") is not None and authority is None:
        named.append("ca_file")
    if named:
        raise EngineError(f"`spec.target.tls.{named[0]}`: a target may name no file of this machine")


def _object(value: object, known: Collection[str], place: str) -> Json:
    if not isinstance(value, dict):
        raise EngineError(f"`{place}`: expected an object")
    unknown = [name for name in value if name not in known]
    if unknown:
        raise EngineError(f"`{place}`: unknown key `{shortened(str(unknown[0]))}`")
    return value


# --- the authority of a server's certificates on its way to another machine -------------------------------


def text_of(spec: Json) -> str | None:
    """Return the text of the file that a specification names; None: it names none.

    *Errors*: EngineError when it cannot be read.
    """
    file = (spec["target"].get("tls") or {}).get("ca_file")
    try:
        return file and Path(file).read_text()
    except OSError as error:
        raise EngineError(f"`{file}`: cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def with_authority(spec: Json, text: str | None) -> Iterator[Json]:
    """Yield a specification that names a file of this text, for this process and its children of one user.

    The file is in no folder, so that no kill leaves it.
    """
    if text is None:
        yield spec
        return
    with os.fdopen(os.memfd_create("prony-authority"), "wb", buffering=0) as file:
        file.write(text.encode(errors="replace"))
        place = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        target = spec["target"]
        yield {**spec, "target": {**target, "tls": {**target["tls"], "ca_file": place}}}

"""Words for classes of the account, for machines and for loads.

Why trials do not count, in words.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from prony.core.safe_text import escaped
from prony.core.units import format_duration, seconds
from prony.figures.account import Carried, RequestClass
from prony.figures.at_least import is_bound, open_end
from prony.figures.summary import CellSummary
from prony.figures.validity import FAULT_WORDS
from prony.model.facts import Fingerprint
from prony.model.subject import Availability
from prony.model.trial import Failed, FaultKind, Invalid
from prony.model.workload import ClosedLoop, CountStop, DurationStop, Mix, OpenLoop, Workload
from prony.reading.failures import Cause
from prony.reading.groups import Group
from prony.report.forms import as_typed, byte_size, count, load_number, whole_percent
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, counted, each_of, joined, pointer, text


def outcome_words(found: Cause, at: str) -> Text:
    """Return the outcome of trials and its reason. ``at``: where the report's JSON has the cause."""
    match found.outcome:
        case Failed(stage):
            return text("failed at {}: {}", Name(stage), cause_words(found, at))
        case Invalid():
            return text("not valid: {}", cause_words(found, at))
        case _:
            return text("ok")


def cause_words(found: Cause, at: str) -> Text:
    """Return why trials do not count: the reason that all of them share, or the range of their figures."""
    if found.fault is None or found.low is None or found.high is None or not found.differs:
        reason = found.outcome.reason if isinstance(found.outcome, Failed | Invalid) else ""
        return text("{}", Quote(reason, at + pointer("reason")))
    form = format_duration if found.fault is FaultKind.SLEPT else whole_percent
    low, high = each_of(found, at, form, "low", "high")
    said = text(FAULT_WORDS[found.fault], text("{} to {}", low, high))
    return said if found.also is None else text("{}; {}", said, Quote(found.also, at + pointer("also")))


_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "ok": "answered as expected",
        "failed_validation": "answered, but failed a check",
        "connect_refused": "connection refused",
        "connect_timed_out": "no connection before the time-out",
        "connect_unreachable": "server unreachable",
        "dns": "name not resolved",
        "tls": "no TLS session",
        "reset": "reset by the server",
        "eof": "connection closed before a reply",
        "short_body": "reply cut short",
        "parse": "reply breaks a rule of its protocol",
        "stream_refused": "refused by the server, not looked at",
        "timed_out": "no complete reply before the time-out",
        "not_sent_queue": "not sent: no connection or stream free before the time-out",
        "not_sent_end": "not sent: still queued at the end",
        "in_flight_at_end": "unanswered at the end",
        "client_no_address": "generator: no local port left",
        "client_no_descriptor": "generator: no file descriptor left",
        "client_no_buffer": "generator: no memory for sockets",
        "client_other": "generator: other error",
        "bad_status": "answered with another status",
        "unspecified": "failed: the generator does not say how",
    }
)


def bound_sign(cell: CellSummary, metric: str) -> str:
    """Return what stands before a figure of speed that is a bound, because the generator was the limit."""
    if not cell.at_least or not is_bound(metric):
        return ""
    return "≥ " if open_end(metric, at_least=True).above > 1 else "≤ "


def ending_words(ending: RequestClass) -> str:
    """Return in words how requests ended."""
    if ending.status is not None:
        return f"answered with status {ending.status}"
    return _CLASSES.get(ending.name, ending.name)


def carried_words(found: Carried, at: str) -> Text:
    """Return how the requests ended that the window found open; ``at``: where the JSON has them."""
    return text(
        "{} answered as expected, {} failed, {} unanswered",
        *each_of(found, at, count, "answered", "failed", "unanswered"),
    )


def availability_words(found: Availability) -> str:
    """Return in words whether something can be measured here.

    >>> availability_words(Availability.lacking("wrk"))
    'needs: wrk'
    """
    return found.kind.value if found.is_here else f"needs: {', '.join(found.lacks)}"


# --- loads ------------------------------------------------------------------------------------------------


def load_words(workload: Workload, at: str) -> Text:
    """Return the part of a load that a study varies, such as ``100 connections``.

    ``at``: where the report's JSON has the load.
    """
    words = text("{}{}", _size(workload, at), streams_words(workload, at))
    match workload.stop:
        case CountStop(requests):
            return text("{}, {}", words, counted(_stop(requests, at, "requests"), "request"))
        case _:
            return words


def _size(workload: Workload, at: str) -> Text:
    match workload.loop:
        case ClosedLoop(connections):
            return counted(Figure(connections, count, at + pointer("loop", "connections")), "connection")
        case OpenLoop(rate_per_s):
            return text("{}/s", Figure(rate_per_s, load_number, at + pointer("loop", "rate_per_s")))


def streams_words(workload: Workload, at: str) -> Text:
    """Return how many requests a connection has at once; empty where it is one, as without HTTP/2."""
    if workload.streams == 1:
        return EMPTY
    return text(" with {} each", counted(Figure(workload.streams, count, at + pointer("streams")), "stream"))


def _stop(value: float, at: str, name: str) -> Figure:
    return Figure(value, count, at + pointer("stop", name))


def workload_words(workload: Workload, at: str) -> Text:
    """Return a load as a heading, such as ``Closed loop, 100 connections, 30 s``; ``at`` as before."""
    said = text("{}, {}", _loop_words(workload, at), stop_words(workload, at))
    if not workload.request.keep_alive:
        said = text("{}, a connection for each request", said)
    if workload.groups:
        number = Figure(len(workload.groups), count, at + pointer("groups"))
        said = text("{}, {} groups of users", said, number)
    if workload.follow:
        hops = counted(Figure(workload.follow, count, at + pointer("follow")), "redirect")
        said = text("{}, up to {} followed", said, hops)
    return text("{}, {}", said, mix_words(workload.mix, at)) if workload.mix else said


def mix_words(mix: Mix, at: str) -> Text:
    """Return a mix with its weights, such as ``mix of 2 paths (/=9 /cart=1)``; ``at`` as before."""
    if mix.file is not None:
        requests = Figure(mix.file.requests, count, at + pointer("mix", "file", "requests"))
        words = mix.file.describe().partition(" ")[2]
        return text("{} {}", requests, Name(escaped(words)))
    number = Figure(len(mix.paths), count, at + pointer("mix", "paths"))
    return text("mix of {} paths ({})", number, Name(escaped(mix.describe())))


def _loop_words(workload: Workload, at: str) -> Text:
    match workload.loop:
        case ClosedLoop():
            return text("Closed loop, {}{}", _size(workload, at), streams_words(workload, at))
        case OpenLoop(_, arrivals):
            shared = streams_words(workload, at)
            of_each = text(", connections{}", shared) if shared else EMPTY
            return text("Open loop, {} {}{}", _size(workload, at), arrivals.value, of_each)


def stop_words(workload: Workload, at: str) -> Text:
    """Return when a window ends: after a time, or a number of requests."""
    match workload.stop:
        case DurationStop(duration_ns):
            return text("{} s", Figure(duration_ns, _seconds, at + pointer("stop", "duration_ns")))
        case CountStop(requests):
            return counted(_stop(requests, at, "requests"), "request")


def _seconds(value_ns: float) -> str:
    return as_typed(seconds(int(value_ns)))


def group_words(group: Group, place: int) -> Text:
    """Return the load of a group; empty where each generator has its own. ``place``: among the groups."""
    if group.of_generators:
        return EMPTY
    return _with_request(load_words(group.workload, pointer("groups", place, "load")), group, place)


def group_title(group: Group, place: int) -> Text:
    """Return the load of a group as a heading, such as ``Closed loop, 100 connections, 30 s``."""
    return _with_request(workload_words(group.workload, pointer("groups", place, "load")), group, place)


def _with_request(words: Text, group: Group, place: int) -> Text:
    """Return a load's words with what it asks for, where another load differs in nothing else."""
    if group.asks is None:
        return words
    return text("{}, {}", words, Quote(group.asks, pointer("groups", place, "asks")))


def heading(words: str) -> str:
    """Return words with a capital letter."""
    return words[:1].upper() + words[1:]


# --- the machine ------------------------------------------------------------------------------------------


def _fact(fingerprint: Fingerprint, *path: str) -> str | int | None:
    """Return a fact of the fingerprint; None where it is missing or of another kind."""
    value = fingerprint.fact(*path)
    return value if isinstance(value, (str, int)) else None


def machine_words(fingerprint: Fingerprint) -> Text:
    """Return the machine in one line, without unknown parts."""
    return joined(_machine(fingerprint)) or text("unknown machine")


def _machine(fingerprint: Fingerprint) -> list[Part]:
    cpus, memory = _fact(fingerprint, "cpu", "available"), _fact(fingerprint, "memory", "total_bytes")
    model, release = _fact(fingerprint, "cpu", "model"), _fact(fingerprint, "kernel", "release")
    found: list[Part | None] = [
        Name(_model(str(model))) if model else None,
        _cpus(cpus) if isinstance(cpus, int) and cpus else None,
        Figure(memory, byte_size, "/fingerprint/memory/total_bytes") if isinstance(memory, int) else None,
        text("kernel {}", Name(str(release))) if release else None,
        "virtual machine" if _fact(fingerprint, "virtualisation", "guest") is True else None,
    ]
    return [part for part in found if part]


def _model(name: str) -> str:
    """Return a CPU's name without marks.

    >>> _model("Intel(R) Xeon(R) Processor")
    'Intel Xeon'
    """
    return " ".join(re.sub(r"\((R|TM)\)|\b(CPU|Processor)\b", " ", name).split()) or name


def _cpus(cpus: int) -> Text:
    return counted(Figure(cpus, count, "/fingerprint/cpu/available"), "CPU")

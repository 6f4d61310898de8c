"""Words for what the account, the machine and comparisons hold."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from prony.model import ClosedLoop, CountStop, Fingerprint, OpenLoop, Workload
from prony.reading.study import Group
from prony.units import format_bytes, format_count

__all__ = [
    "class_words",
    "count_words",
    "group_words",
    "joined",
    "load_words",
    "machine_words",
    "signed_percent",
]

_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "ok": "answered as expected",
        "failed_validation": "answered with another body",
        "connect_refused": "connection refused",
        "connect_timed_out": "no connection before the time-out",
        "connect_unreachable": "server unreachable",
        "dns": "name not resolved",
        "tls": "no TLS session",
        "reset": "connection reset by the server",
        "eof": "connection closed before a reply",
        "short_body": "connection closed within a reply",
        "parse": "reply is not HTTP/1.1",
        "timed_out": "no complete reply before the time-out",
        "not_sent_queue": "not sent: no idle connection before the time-out",
        "not_sent_end": "not sent: still queued at the end",
        "in_flight_at_end": "unanswered at the end",
        "client_no_address": "generator: no local port left",
        "client_no_descriptor": "generator: no file descriptor left",
        "client_no_buffer": "generator: no memory for sockets",
        "client_other": "generator: other error",
        "unspecified": "failed: the generator does not tell how",
    }
)


def class_words(name: str) -> str:
    """Return a class of the account in words."""
    if name.startswith("bad_status "):
        return f"answered with status {name.removeprefix('bad_status ')}"
    return _CLASSES.get(name, name)


def count_words(count: int, noun: str) -> str:
    """Return a number of things.

    >>> count_words(1, "block"), count_words(1200, "trial")
    ('1 block', '1,200 trials')
    """
    return f"{format_count(count)} {noun}{'' if count == 1 else 's'}"


def joined(names: Sequence[str], most: int = 4) -> str:
    """Return names with commas, those beyond ``most`` as a number.

    >>> joined(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    text = ", ".join(names[:most])
    return f"{text} and {len(names) - most} more" if len(names) > most else text


def load_words(workload: Workload) -> str:
    """Return what a study varies of a load, such as ``100 connections``."""
    match workload.loop:
        case ClosedLoop(connections):
            words = count_words(connections, "connection")
        case OpenLoop(rate_per_s):
            words = f"{rate_per_s:,g}/s"
    match workload.stop:
        case CountStop(requests):
            return f"{words}, {format_count(requests)} requests"
        case _:
            return words


def signed_percent(effect: float) -> str:
    """Return a relative difference, such as ``+12.9 %``; from tenfold on, as a factor."""
    if effect >= 9:
        return f"{effect + 1:,.0f} times"
    return f"{100 * effect:+.1f} %" if abs(effect) < 1 else f"{100 * effect:+.0f} %"


def _fact(fingerprint: Fingerprint, *path: str) -> str | int | None:
    """Return a fact of the fingerprint; null where it is missing or of another kind."""
    value = fingerprint.fact(*path)
    return value if isinstance(value, (str, int)) else None


def group_words(group: Group) -> str:
    """Return the load of a group; empty where each generator has its own."""
    return "" if group.of_generators else load_words(group.workload)


def machine_words(fingerprint: Fingerprint) -> str:
    """Return the machine in one line; what is not known is left out."""
    cpus, memory = _fact(fingerprint, "cpu", "available"), _fact(fingerprint, "memory", "total_bytes")
    guest = _fact(fingerprint, "virtualisation", "guest")
    parts = (
        _fact(fingerprint, "cpu", "model"),
        f"{cpus} CPU{'s' if cpus != 1 else ''}" if cpus else None,
        format_bytes(memory) if isinstance(memory, int) else None,
        f"kernel {release}" if (release := _fact(fingerprint, "kernel", "release")) else None,
        "virtual machine" if guest is True else None,
    )
    return ", ".join(str(part) for part in parts if part) or "unknown machine"

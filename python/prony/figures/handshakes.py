"""TLS of a trial: how long its handshakes took, and what was agreed on. Pure.

>>> agreed_in(None) is None
True
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prony.core.metrics.requests import HANDSHAKES
from prony.figures.generator import missing_reason
from prony.figures.latency import LatencySummary, summary_of
from prony.figures.missing import Missing, Value
from prony.model.address import Tls
from prony.model.recording import Distribution, Recording

_NO_TLS = Missing("there was no TLS")
_NONE = Missing("there was no such handshake")
_FEW = Missing("fewer than 10 handshakes lie above it")
_SHOWN = {"p50": "50", "p99": "99"}
_NAMED = ("protocols", "ciphers", "groups", "keys", "alpn")


@dataclass(frozen=True, slots=True)
class Agreed:
    """What TLS agreed on, by name; several where connections differ."""

    protocols: tuple[str, ...]
    ciphers: tuple[str, ...]
    groups: tuple[str, ...]
    """Of the key exchange."""
    keys: tuple[str, ...]
    """Of the certificate."""
    alpn: tuple[str, ...]
    """The protocol within."""
    resumption: bool | None
    """Whether the generator took up earlier sessions where the server let it; null where that is not known.
    """


@dataclass(frozen=True, slots=True)
class AgreedInBlocks:
    """What TLS agreed on in some of a cell's blocks, where it is another in others."""

    blocks: tuple[int, ...]
    tls: Agreed


def differing(found: Iterable[tuple[int, Agreed | None]]) -> tuple[AgreedInBlocks, ...]:
    """Return what the trials of a cell agreed on, each with its blocks, in the order of the first of them;
    nothing where it is the same in all. What was not asked for by the cell, such as the cipher suite, the
    server chooses, and it may choose otherwise.
    """
    blocks: dict[Agreed, list[int]] = {}
    for block, agreed in sorted(found, key=lambda one: one[0]):
        if agreed is not None:
            blocks.setdefault(agreed, []).append(block)
    several = tuple(AgreedInBlocks(tuple(where), agreed) for agreed, where in blocks.items())
    return several if len(several) > 1 else ()


def agreed_in(recording: Recording | None) -> Agreed | None:
    """Return what a trial's connections agreed on; None without TLS. Of a generator that does not say so it
    is what was asked.
    """
    asked = _asked(recording) if recording else None
    found = recording.tls if recording else None
    if found is None:
        return None if asked is None else Agreed((), (), (), (), (), asked.resumption)
    names = {name: _names(getattr(found, name)) for name in _NAMED}
    return Agreed(**names, resumption=asked.resumption if asked else None)


def _asked(recording: Recording) -> Tls | None:
    return recording.spec.target.tls if recording.spec and recording.spec.target else None


def _names(counts: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(name for name in counts if name != "none"))


def agreed_by_all(each: Iterable[Agreed | None]) -> Agreed | None:
    """Return what several trials agreed on, together; None: none had TLS."""
    known = [one for one in each if one is not None]
    if not known:
        return None
    resumption = {one.resumption for one in known}
    names = {kind: {name for one in known for name in getattr(one, kind)} for kind in _NAMED}
    together = {kind: tuple(sorted(found)) for kind, found in names.items()}
    return Agreed(**together, resumption=resumption.pop() if len(resumption) == 1 else None)


def handshake_metrics(recording: Recording) -> dict[str, Value]:
    """Return the number and the times of handshakes by metric name.

    *Units and shapes*: nanoseconds.
    """
    found = recording.tls
    if found is None:
        absent = _NO_TLS if _asked(recording) is None else missing_reason(recording.engine, "tls")
        return {metric.name: absent for metric in HANDSHAKES}
    return {
        "handshakes_failed": float(found.failed),
        **_of_kind("full", found.full),
        **_of_kind("resumed", found.resumed),
    }


def _of_kind(kind: str, times: Distribution) -> dict[str, Value]:
    summary = summary_of(times)
    if not summary.count:
        absent: dict[str, Value] = {f"handshake_{kind}_{name}": _NONE for name in ("mean", *_SHOWN, "max")}
        return {f"handshakes_{kind}": 0.0, **absent}
    return {f"handshakes_{kind}": float(summary.count), **_times(kind, summary)}


def _times(kind: str, summary: LatencySummary) -> dict[str, Value]:
    values = {
        "mean": summary.mean_ns,
        **{name: summary.percentiles[percentile] for name, percentile in _SHOWN.items()},
        "max": summary.max_ns,
    }
    return {
        f"handshake_{kind}_{name}": _FEW if value is None else float(value) for name, value in values.items()
    }

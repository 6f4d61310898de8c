"""Which code a page's CPU goes to: sampled shares, in time a page. Pure.

*Definition*: CPU time of the subject in the window / its valid replies, times the share of the samples.
*Assumptions*: what was sampled after the window is alike to what ran in it. *Source*: the subject's CPU time
as its control groups or processes count it; `prony.figures.hot_code`.

>>> spot = HotSpot(CodeKind.APP, "f", "a.py:1", 0.9)
>>> code = HotCode(500, {CodeKind.SERVER: 0.04, CodeKind.APP: 0.96}, (spot,))
>>> found = page_code(code, 20e6)
>>> found.hottest[0].cpu_ns, found.times_server
(18000000.0, 25.0)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prony.model.facts import CodeKind, HotCode, HotSpot

# Fewer samples of the server say nothing of a ratio.
_LEAST_OF_SERVER = 10


@dataclass(frozen=True, slots=True)
class PageSpot:
    """A function that uses the CPU, with what it calls."""

    kind: CodeKind
    function: str
    place: str
    """The app's line that calls it, of Node.js where the calling function begins; empty where the app does
    not.
    """
    share: float
    cpu_ns: float | None
    """Of one page; null: that is not known."""


@dataclass(frozen=True, slots=True)
class PageCode:
    """Where the CPU of a page goes, by so many `samples` in a load after the window."""

    samples: int
    shares: Mapping[CodeKind, float] = field(default_factory=dict)
    """By whose code it is."""
    hottest: tuple[PageSpot, ...] = ()
    """The functions that use most, without the server's own."""
    times_server: float | None = None
    """How many times the server's own code a page costs; null: too few samples are of it."""
    slowed: float | None = None
    """By which share the rate fell while it was sampled; null: an open loop."""
    missing: str = ""
    """Why there is none."""


def page_code(found: HotCode, page_cpu_ns: float | None) -> PageCode:
    """Return shares with the time that they are of a page."""
    server = found.shares.get(CodeKind.SERVER, 0.0)
    return PageCode(
        samples=found.samples,
        shares=found.shares,
        hottest=tuple(_spot(one, page_cpu_ns) for one in found.hottest),
        times_server=1 / server if server * found.samples >= _LEAST_OF_SERVER else None,
        slowed=found.slowed,
        missing=found.missing,
    )


def _spot(found: HotSpot, page_cpu_ns: float | None) -> PageSpot:
    cpu_ns = None if page_cpu_ns is None else found.share * page_cpu_ns
    return PageSpot(found.kind, found.function, found.place, found.share, cpu_ns)

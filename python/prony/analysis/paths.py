"""The paths of a mix in one load.

>>> load_paths(None)
()
"""

from dataclasses import dataclass, field

from prony.analysis.account import Tally, tally
from prony.analysis.latency import LatencySummary, TimesOfKind, of_kind, path_summaries
from prony.model.recording import PathFigures, Recording, Traffic
from prony.model.shapes import INLINE
from prony.model.shown import INTERNAL, shown_as


@dataclass(frozen=True, slots=True)
class LoadPath:
    """A path of one load, its requests, and its times of one ``kind``: `response` in an open loop, `service`
    in a closed one.
    """

    path: str
    weight: float
    asked: float
    """The share that its weight asks for."""
    share: float | None
    """Of all requests; null where there were none."""
    account: Tally = field(metadata=INLINE)
    bytes: Traffic
    kind: str = field(metadata=INTERNAL)
    ok: LatencySummary = field(metadata=INTERNAL)
    all: LatencySummary = field(metadata=INTERNAL)

    @shown_as("")
    def times(self) -> TimesOfKind:
        """Return its times."""
        return of_kind(self.kind, self.ok, self.all)


def load_paths(recording: Recording | None) -> tuple[LoadPath, ...]:
    """Return the paths of a load's mix, in its order; none where it has none."""
    if recording is None:
        return ()
    weights, whole = sum(one.weight for one in recording.paths), tally(recording.account).requests
    kind = "response" if recording.is_open else "service"
    return tuple(_path(one, kind, one.weight / weights, whole) for one in recording.paths)


def _path(one: PathFigures, kind: str, asked: float, whole: int) -> LoadPath:
    times, account = path_summaries(one), tally(one.account)
    share = account.requests / whole if whole else None
    return LoadPath(one.path, one.weight, asked, share, account, one.bytes, kind, times["ok"], times["all"])

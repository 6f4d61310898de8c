"""The paths of a mix in one load.

>>> load_paths(None)
()
"""

from dataclasses import dataclass

from prony.analysis.account import Tally, tally
from prony.analysis.latency import LatencySummary, path_summaries
from prony.model.recording import PathFigures, Recording


@dataclass(frozen=True, slots=True)
class LoadPath:
    """A path of one load: the share of the requests that it was to have (``asked``), and its requests.

    ``kind``: of its times, `response` in an open loop and `service` in a closed one: of valid replies
    (``ok``), and of all requests.
    """

    path: str
    weight: float
    asked: float
    account: Tally
    kind: str
    ok: LatencySummary
    all: LatencySummary

    def share(self, of: Tally) -> float | None:
        """Return its share of all requests; null where there were none."""
        return self.account.requests / of.requests if of.requests else None


def load_paths(recording: Recording | None) -> tuple[LoadPath, ...]:
    """Return the paths of a load's mix, in its order; none where it has none."""
    if recording is None:
        return ()
    weights = sum(one.weight for one in recording.paths)
    kind = "response" if recording.is_open else "service"
    return tuple(_path(one, kind, one.weight / weights) for one in recording.paths)


def _path(one: PathFigures, kind: str, asked: float) -> LoadPath:
    found = path_summaries(one)
    return LoadPath(one.path, one.weight, asked, tally(one.account), kind, found["ok"], found["all"])

"""What a load says of each path of a mix, as values.

Must not know words.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from prony.analysis.account import Tally, tally
from prony.analysis.latency import LatencySummary, path_summaries
from prony.model.recording import PathFigures, Recording

__all__ = ["PathReading", "read_paths"]


@dataclass(frozen=True, slots=True)
class PathReading:
    """A path with the share of the requests that it was to have, and the one that it had; null where there
    were none.

    ``kind``: of its times, `response` in an open loop and `service` in a closed one: of valid replies, and of
    all requests.
    """

    figures: PathFigures
    asked: float
    share: float | None
    account: Tally
    kind: str
    ok: LatencySummary
    all: LatencySummary


def read_paths(recording: Recording) -> tuple[PathReading, ...]:
    """Return the paths of a load's mix, in its order; none where it has none."""
    return tuple(_paths(recording))


def _paths(recording: Recording) -> Iterator[PathReading]:
    weights = sum(one.weight for one in recording.paths)
    requests = tally(recording.account).requests
    for one in recording.paths:
        account, summaries = tally(one.account), path_summaries(one)
        yield PathReading(
            figures=one,
            asked=one.weight / weights,
            share=account.requests / requests if requests else None,
            account=account,
            kind="response" if recording.is_open else "service",
            ok=summaries["ok"],
            all=summaries["all"],
        )

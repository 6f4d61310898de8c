"""A comparison as JSON with stable keys (`prony compare --json`)."""

from collections.abc import Sequence
from dataclasses import asdict

from prony.analysis.change import LimitResult
from prony.analysis.failure_rates import FailureComparison
from prony.analysis.summary import CellSummary, Estimate
from prony.analysis.versus import Match, Row, Versus
from prony.archive.codec import encode_workload
from prony.model import Json
from prony.report.compare import UNPAIRED, Sides

__all__ = ["VERSION", "compare_json"]

VERSION = 1


def compare_json(sides: Sides, found: Versus, limits: Sequence[LimitResult]) -> Json:
    """Return the comparison as JSON. A missing value is null, with its reason."""
    return {
        "version": VERSION,
        "first": sides.first,
        "second": sides.second,
        "paired": found.paired,
        "by_session": found.by_session,
        "remark": None if found.paired else UNPAIRED,
        "forced": list(sides.forced),
        "loads": [
            _match_json(match, found, failed)
            for match, failed in zip(found.matches, found.failures, strict=True)
        ],
        "limits": [
            {
                "limit": one.limit.text,
                "load": dict(one.match.first.cell.load),
                "metric": one.metric,
                "shown": one.shown,
                "reason": one.reason,
            }
            for one in limits
        ],
    }


def _match_json(match: Match, found: Versus, failed: FailureComparison) -> Json:
    workload = encode_workload(match.first.cell.workload)
    return {
        "first": match.first.cell.subject.name,
        "second": match.second.cell.subject.name,
        "load": dict(match.first.cell.load),
        "workload": {name: workload[name] for name in ("loop", "stop")},
        "failed_trials": asdict(failed),
        "metrics": {row.metric: _row_json(row) for row in found.rows if row.match is match},
    }


def _row_json(row: Row) -> Json:
    own = {
        "family": "screening" if row.screens else "primary",
        "first": _mean(row.match.first, row.metric),
        "second": _mean(row.match.second, row.metric),
    }
    if row.comparison is None:
        return {**own, "comparison": None, "reason": row.reason}
    compared = {**asdict(row.comparison), "verdict": row.comparison.verdict.value}
    return {**own, "comparison": compared, "reason": None}


def _mean(cell: CellSummary, metric: str) -> float | None:
    value = cell.metrics[metric]
    return value.mean if isinstance(value, Estimate) else None

"""Several archives as JSON: the figures of the same cells, the oldest archive first."""

from dataclasses import asdict

from prony.analysis.summary import CellSummary, Estimate
from prony.model import Json
from prony.model.shapes import encode
from prony.reading.trend import SameLoad, Trend, change
from prony.report.words import machine_words

__all__ = ["trend_json"]


def trend_json(trend: Trend) -> Json:
    """Return what `prony report A B --json` prints."""
    return {
        "version": 1,
        "editions": [
            {
                "name": one.name,
                "started_unix_ns": one.started_unix_ns,
                "prony_version": one.prony_version,
                "machine": str(machine_words(one.reading.fingerprint)),
                "versions": {name: record.server_version for name, record in one.reading.subjects.items()},
            }
            for one in trend.editions
        ],
        "loads": [_load(one) for one in trend.loads],
    }


def _load(one: SameLoad) -> Json:
    return {
        "load": encode(one.workload),
        "metric": one.metric,
        "subjects": {
            name: {
                "figures": [_figure(cell, one.metric) for cell in row],
                "change": change(row, one.metric),
            }
            for name, row in one.cells.items()
        },
    }


def _figure(cell: CellSummary | None, metric: str) -> Json | None:
    value = cell.metrics[metric] if cell else None
    if not isinstance(value, Estimate):
        return None
    return {**asdict(value), "half_width": value.half_width}

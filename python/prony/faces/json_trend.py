"""Several archives as JSON: the figures of the same cells, the oldest archive first."""

from dataclasses import asdict

from prony.analysis.summary import Estimate
from prony.model.shapes import Json, encode
from prony.reading.trend import SameLoad, Trend, change
from prony.report.words import machine_words


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
    metrics = metrics_json(one)
    subjects = {
        name: {"figures": metrics[one.metric][name], "change": change(row, one.metric)}
        for name, row in one.cells.items()
    }
    return {"load": encode(one.workload), "metric": one.metric, "subjects": subjects, "metrics": metrics}


def metrics_json(one: SameLoad) -> Json:
    """Return the figures of a load in all metrics that are shown: by metric and subject, one an edition."""
    return {
        metric: {name: list(map(_figure, row)) for name, row in one.figures(metric).items()}
        for metric in one.metrics
    }


def _figure(value: Estimate | None) -> Json | None:
    return None if value is None else asdict(value)

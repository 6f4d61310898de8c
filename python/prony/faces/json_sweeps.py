"""What settings do, as JSON. Places in it: docs/reference/report-json.md."""

from dataclasses import asdict

from prony.model.shapes import Json, encode
from prony.reading.sweeps import Crossed, Sweep


def sweep_json(sweep: Sweep) -> Json:
    """Return a sweep; combinations of two factors' levels have keys such as ``1,2``."""
    return {
        "group": sweep.group,
        "name": sweep.name,
        "metric": sweep.metric,
        "factors": [asdict(factor) for factor in sweep.factors],
        "points": [{"cell": one.cell, "name": one.name, "levels": list(one.at)} for one in sweep.points],
        "best": sweep.best,
        "ties": list(sweep.ties),
        "least": sweep.least,
        "blocks": sweep.blocks,
        "decided": sweep.decided,
        "neighbours": [
            {
                "factor": one.factor,
                "level": one.level,
                "name": one.name,
                "comparison": encode(one.comparison),
            }
            for one in sweep.neighbours
        ],
        "at_edge": list(sweep.at_edge),
        "steps": {str(place): encode(one) for place, one in sweep.steps.items()},
        "crossed": [_crossed(one) for one in sweep.crossed],
    }


def _crossed(one: Crossed) -> Json:
    return {
        "first": one.first,
        "second": one.second,
        "steps": {f"{i},{j}": encode(found) for (i, j), found in one.steps.items()},
        "found": {f"{i},{j}": encode(found) for (i, j), found in one.found.items()},
        "verdict": one.verdict.value,
        "best": None if one.best is None else [list(levels) for levels in one.best],
        "everywhere": list(one.everywhere),
    }

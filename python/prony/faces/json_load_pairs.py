"""The stable JSON of two loads in alternating windows (`prony load A --compare B --json`)."""

from dataclasses import asdict

from prony.analysis.load_pairs import FigurePair
from prony.model import Json
from prony.report.load_pairs import ComparedLoads

__all__ = ["load_pairs_json"]

_VERSION = 1


def load_pairs_json(compared: ComparedLoads) -> Json:
    """Return the comparison as JSON with stable keys; a missing value is null, with its reason."""
    found = compared.found
    return {
        "version": _VERSION,
        "compared": [compared.first, compared.second],
        "seed": compared.seed,
        "asked_pairs": compared.asked,
        "pairs": found.pairs,
        "interrupted": compared.dropped > 0,
        "dropped_windows": compared.dropped,
        "limited_windows": compared.limited,
        "first": asdict(found.first),
        "second": asdict(found.second),
        "figures": [_figure(one) for one in found.figures],
    }


def _figure(one: FigurePair) -> Json:
    return {
        "metric": one.metric,
        "first": one.first,
        "second": one.second,
        "comparison": {**asdict(one.comparison), "verdict": one.comparison.verdict.value},
        "pairs": one.pairs,
        "reason": one.reason,
        "resemblance": None if one.resemblance is None else asdict(one.resemblance),
    }

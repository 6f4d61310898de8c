"""What limits subjects, and why that is known, as JSON (`prony why --json`)."""

from collections.abc import Iterable

from prony.faces.json_diagnosis import diagnosis_json
from prony.model.shapes import Json
from prony.reading.limits import LimitedCell


def why_json(found: Iterable[LimitedCell]) -> Json:
    """Return the diagnoses. ``at``: where `prony report --json` has the same value."""
    return {
        "version": 1,
        "subjects": [
            {
                "name": one.name,
                "load": one.group.workload.describe(),
                "at": one.pointer,
                "diagnosis": diagnosis_json(one.diagnosis),
            }
            for one in found
        ],
    }

"""A comparison as JSON with stable keys (`prony compare --json`, `prony load A --compare B --json`)."""

from prony.analysis.versus import Versus
from prony.model.shapes import Json, encode

_VERSION = 1


def compare_json(found: Versus) -> Json:
    """Return the comparison as JSON. A missing value is null, with its reason; of requests there is nothing,
    for their headers may be secret.
    """
    made: Json = {"version": _VERSION, **encode(found)}
    for load in made["loads"]:
        load["workload"] = {name: load["workload"][name] for name in ("loop", "stop")}
    return made

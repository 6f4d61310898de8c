"""Loads of a mix, and what came of them, made without measuring."""

from copy import deepcopy
from dataclasses import replace

from golden import build
from histograms import distribution
from prony.model import Mix, MixPath
from prony.model.shapes import encode

SHOP = Mix((MixPath("/", 9.0), MixPath("/cart", 1.0)))


def of_mix(workload, mix=SHOP):
    """The load with a mix."""
    return replace(workload, request=replace(workload.request, path=mix.paths[0].path), mix=mix)


def wire_of_mix(workload, ok_by_path, errors_by_path=()):
    """A Recording of a mix as the engine tells it: of each path its valid replies, and its failures."""
    errors = dict(errors_by_path)
    paths = [one.path for one in workload.mix.paths]
    every = sorted(value for path in paths for value in ok_by_path[path])
    whole = build.wire(workload, every, _sum(errors.values()), (), "no", ())
    whole["spec"] = {**whole["spec"], "workload": encode(workload)}
    whole["paths"] = [
        _path(workload, one, ok_by_path[one.path], errors.get(one.path, {})) for one in workload.mix.paths
    ]
    return whole


def _sum(errors):
    found = {}
    for one in errors:
        for name, count in one.items():
            found[name] = found.get(name, 0) + count
    return found


def _path(workload, path, ok, errors):
    alone = build.wire(workload, ok, errors, (), None, ())
    kind = "response" if alone["loop"] == "open" else "service"
    kept = {name: alone["distributions"][name] for name in (f"ok_{kind}", f"censored_{kind}")}
    nothing = {f"carried_in_{kind}": distribution([])}
    parts = {"account": alone["account"], "bytes": alone["bytes"]}
    return deepcopy({"path": path.path, "weight": path.weight, **parts, **kept, **nothing})

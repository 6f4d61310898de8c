"""The central types as JSON and back. A workload reads as in the engine's specification
(docs/reference/engine-wire.md).

Decoding raises KeyError, TypeError or ValueError (ShapeError among them) on wrong data; the archive turns
these into its own error.

>>> masked(Request(headers=(("Accept", "*/*"), ("Authorization", "Bearer x")))).headers
(('Accept', '*/*'), ('Authorization', '<redacted>'))
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from prony.core.metrics import METRICS
from prony.core.safe_text import shortened
from prony.model.exchange import Check, Contract, Request, fault_of
from prony.model.facts import RateStep
from prony.model.json_codec import Json, ShapeError, decode, encode
from prony.model.plan import Claim, Original
from prony.model.recording import Target
from prony.model.subject import App, Interface, Subject
from prony.model.workload import Mix, Workload, fault_of_groups, fault_of_mix

_MOST_LEVELS = 100
# 2**128 has 39.
_MOST_DIGITS = 40
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]')
_OPENING, _CLOSING = ("[", "{"), ("]", "}")


def dump(value: Any) -> str:
    """Return ``value`` as compact JSON; a number that is not finite is an error, as JSON has none."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def load_object(text: str) -> Json:
    """Return the JSON object that ``text`` writes.

    *Errors*: ValueError or TypeError, also for what Python would accept: NaN, infinities, numbers of more
    than 40 digits, and more than 100 levels.
    """
    if text.count("[") + text.count("{") > _MOST_LEVELS and _levels(text) > _MOST_LEVELS:
        raise ValueError(f"JSON of {_levels(text):,} levels; expected at most {_MOST_LEVELS}")
    value = json.loads(text, parse_constant=_refuse, parse_int=_whole, parse_float=_finite)
    if not isinstance(value, dict):
        raise TypeError("expected a JSON object")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"`{constant}` is not JSON")


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits; expected at most {_MOST_DIGITS}")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise ValueError(f"`{shortened(digits)}` is no finite number")
    return value


def _levels(text: str) -> int:
    """Return how deep JSON goes. The text is not parsed: it may be none."""
    level = deepest = 0
    for mark in _MARKS.findall(text):
        level += mark in _OPENING
        level -= mark in _CLOSING
        deepest = max(deepest, level)
    return deepest


def encode_workload(workload: Workload) -> Json:
    """Return a workload as the engine's specification writes it, without the values of secret headers."""
    found: Json = encode(masked_load(workload))
    return found


def decode_workload(value: Json) -> Workload:
    """Return the workload that ``encode_workload`` wrote."""
    found = decode(Workload, value, "workload")
    _check_request(found.request, "workload")
    if found.mix is not None:
        _check_mix(found.mix, found.request)
    if fault := fault_of_groups(found.groups):
        raise ShapeError(*fault, "workload", "groups")
    return found


def _check_mix(mix: Mix, request: Request) -> None:
    if fault := fault_of_mix(mix):
        raise ShapeError(*fault, "workload", "mix")
    if mix.file is None and request.path != mix.paths[0].path:
        raise ShapeError("the first path of the mix", request.path, "workload", "request", "path")


def _check_request(request: Request, place: str) -> None:
    """Refuse a request that could go elsewhere, or be more than one."""
    fault = fault_of(request)
    if fault is not None:
        field, expected = fault
        raise ShapeError(expected, getattr(request, field), place, "request", field)


def encode_subject(subject: Subject) -> Json:
    """Return it as JSON: of its app's environment the names alone, and no request's secrets."""
    app, found = subject.app, encode(subject)
    names = ("name", "title", "folder", "targets", "requirements", "services", "digest")
    stored = _StoredApp(
        **{name: getattr(app, name) for name in names},
        checks=tuple(replace(check, request=masked(check.request)) for check in app.contract.checks),
        environment_names=tuple(sorted(app.environment)),
    )
    return {**found, "app": encode(stored)}


@dataclass(frozen=True, slots=True)
class _StoredApp:
    """An app as it is written: its environment has only names."""

    name: str
    title: str
    folder: str
    targets: Mapping[Interface, str]
    requirements: tuple[str, ...]
    checks: tuple[Check, ...]
    environment_names: tuple[str, ...]
    digest: str
    services: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _OfApp:
    """The part of a stored subject that is not as in the model."""

    app: _StoredApp


def _app(stored: _StoredApp) -> App:
    for check in stored.checks:
        _check_request(check.request, "subject.app.checks")
    return App(
        name=stored.name,
        title=stored.title,
        folder=stored.folder,
        targets=stored.targets,
        requirements=stored.requirements,
        contract=Contract(stored.checks),
        environment=dict.fromkeys(stored.environment_names, ""),
        digest=stored.digest,
        services=stored.services,
    )


def decode_subject(value: Json) -> Subject:
    """Return the subject from its JSON. *Errors*: ShapeError."""
    stored = decode(_OfApp, value, "subject").app
    return decode(Subject, {**value, "app": _app(stored)}, "subject")


def check_metrics(claims: Iterable[Claim], originals: Iterable[Original]) -> None:
    """Refuse what is about no metric: reports look up its title and its unit. *Errors*: ShapeError."""
    for place, found in (("claims", claims), ("originals", originals)):
        for one in found:
            _check_metric(one.metric, place)


def check_steps(steps: Iterable[RateStep]) -> None:
    """Refuse steps of a search that missed what is no metric. *Errors*: ShapeError."""
    for one in steps:
        if one.unmet is not None:
            _check_metric(one.unmet.metric, "facts.unmet")


def _check_metric(name: str, place: str) -> None:
    if name not in METRICS:
        raise ShapeError("one of the metrics", name, place, "metric")


def load_value(text: str) -> object:
    """Return what ``text`` writes, an object or an array; errors as ``load_object``."""
    return load_object(text) if text.startswith("{") else load_object(f'{{"list":{text}}}')["list"]


# --- values that never reach a file -----------------------------------------------------------------------


REDACTED = "<redacted>"

_NAMES = frozenset(["authorization", "proxy-authorization", "cookie", "set-cookie"])
_PARTS = ("token", "secret", "key", "password")


def is_secret(header: str) -> bool:
    """Return whether a header's value may be a secret, by its name."""
    name = header.lower()
    return name in _NAMES or any(part in name for part in _PARTS)


def masked_target(target: Target) -> Target:
    """Return a target without the password for its proxy."""
    behind = target.proxy
    if behind is None or behind.authorization is None:
        return target
    return replace(target, proxy=replace(behind, authorization=REDACTED))


def masked(request: Request) -> Request:
    """Return a request without the values of secret headers."""
    return replace(request, headers=_masked(request.headers))


def masked_load(load: Workload) -> Workload:
    """Return a load whose request and groups of users are without the values of secret headers. Requests from
    a file are known by its digest: what the first of them holds may be a user's password.
    """
    groups = tuple(replace(one, headers=_masked(one.headers)) for one in load.groups)
    is_of_file = load.mix is not None and load.mix.file is not None
    request = Request(keep_alive=load.request.keep_alive) if is_of_file else masked(load.request)
    return replace(load, request=request, groups=groups)


def _masked(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, REDACTED if is_secret(name) else value) for name, value in headers)

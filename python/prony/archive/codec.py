"""The central types as JSON and back. A workload reads as in the engine's specification
(docs/reference/engine-wire.md).

Decoding raises KeyError, TypeError or ValueError (ShapeError among them) on wrong data; the archive turns
these into its own error.

>>> decode_engine(encode_engine(EngineChoice("wrk", 2))).threads
2
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from prony.archive.secrets import masked
from prony.model import (
    App,
    Check,
    Claim,
    ClaimKind,
    Contract,
    Design,
    EngineChoice,
    Frontend,
    Interface,
    Json,
    Needs,
    Original,
    Placement,
    Precision,
    SandboxChoice,
    Subject,
    Workload,
)
from prony.model.shapes import decode, encode

__all__ = [
    "decode_claims",
    "decode_design",
    "decode_engine",
    "decode_originals",
    "decode_placement",
    "decode_sandbox",
    "decode_subject",
    "decode_texts",
    "decode_workload",
    "dump",
    "encode_claims",
    "encode_design",
    "encode_engine",
    "encode_originals",
    "encode_placement",
    "encode_sandbox",
    "encode_subject",
    "encode_workload",
    "load_object",
]


def dump(value: Any) -> str:
    """Return ``value`` as compact JSON; a number that is not finite is an error, as JSON has none."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"`{constant}` is not JSON")


def load_object(text: str) -> Json:
    """Return the JSON object that ``text`` writes; NaN and infinities, which Python would accept, are
    refused.
    """
    value = json.loads(text, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise TypeError("expected a JSON object")
    return value


def encode_workload(workload: Workload) -> Json:
    """Return a workload as the engine's specification writes it, without the values of secret headers."""
    found: Json = encode(replace(workload, request=masked(workload.request)))
    return found


def decode_workload(value: Json) -> Workload:
    """Return the workload that ``encode_workload`` wrote."""
    return decode(Workload, value, "workload")


def _encode_app(app: App) -> Json:
    checks = [replace(check, request=masked(check.request)) for check in app.contract.checks]
    # The environment is stored as names only: values may be secrets.
    return {
        "name": app.name,
        "title": app.title,
        "folder": app.folder,
        "targets": {interface.value: target for interface, target in app.targets.items()},
        "requirements": list(app.requirements),
        "checks": encode(checks),
        "environment_names": sorted(app.environment),
        "services": list(app.services),
        "digest": app.digest,
    }


def _decode_app(value: Json) -> App:
    checks = decode(tuple[Check, ...], value["checks"], "app.checks")
    return App(
        name=value["name"],
        title=value["title"],
        folder=value["folder"],
        targets={Interface(interface): target for interface, target in value["targets"].items()},
        requirements=tuple(value["requirements"]),
        contract=Contract(checks),
        environment=dict.fromkeys(value["environment_names"], ""),
        digest=value["digest"],
        services=tuple(value.get("services", ())),
    )


def encode_subject(subject: Subject) -> Json:
    """Return a subject with its app; the values of the app's environment are left out."""
    return {
        "name": subject.name,
        "server": subject.server,
        "app": _encode_app(subject.app),
        "interface": subject.interface.value,
        "variant": subject.variant,
        "settings": dict(subject.settings),
        "frontend": None if subject.frontend is None else asdict(subject.frontend),
    }


def decode_subject(value: Json) -> Subject:
    """Return the subject that ``encode_subject`` wrote; the app's environment has names with empty values."""
    return Subject(
        name=value["name"],
        server=value["server"],
        app=_decode_app(value["app"]),
        interface=Interface(value["interface"]),
        variant=value["variant"],
        settings=dict(value["settings"]),
        # Archives of the first versions have none.
        frontend=Frontend(**value["frontend"]) if value.get("frontend") else None,
    )


def encode_engine(engine: EngineChoice) -> Json:
    """Return the choice of a generator."""
    found: Json = encode(engine)
    return found


def decode_engine(value: Json) -> EngineChoice:
    """Return the choice that ``encode_engine`` wrote."""
    return decode(EngineChoice, value, "engine")


def encode_sandbox(sandbox: SandboxChoice) -> Json:
    """Return the choice of a sandbox."""
    found: Json = encode(sandbox)
    return found


def decode_sandbox(value: Json) -> SandboxChoice:
    """Return the choice that ``encode_sandbox`` wrote."""
    return decode(SandboxChoice, value, "sandbox")


def encode_placement(placement: Placement | None) -> str | None:
    """Return the CPUs as JSON text; null stays null."""
    if placement is None:
        return None
    return dump(encode(placement))


def decode_placement(text: str | None) -> Placement | None:
    """Return the placement that ``encode_placement`` wrote."""
    return None if text is None else decode(Placement, load_object(text), "placement")


def encode_design(design: Design) -> str:
    """Return a design as JSON text."""
    return dump(asdict(design))


def decode_design(text: str) -> Design:
    """Return the design that ``encode_design`` wrote; archives of the first format have none."""
    value = load_object(text)
    precision = value.get("precision")
    if precision is not None:
        precision = Precision(**{**precision, "looks": tuple(precision["looks"])})
    return Design(**{**value, "precision": precision})


def encode_claims(claims: Sequence[Claim]) -> str:
    """Return claims as JSON text."""
    return dump([asdict(claim) for claim in claims])


def decode_claims(text: str) -> tuple[Claim, ...]:
    """Return the claims that ``encode_claims`` wrote."""
    return tuple(
        Claim(**{**value, "kind": ClaimKind(value["kind"]), "needs": Needs(**value["needs"])})
        for value in _load_list(text)
    )


def encode_originals(originals: Sequence[Original]) -> str:
    """Return published figures as JSON text."""
    return dump([asdict(original) for original in originals])


def decode_originals(text: str) -> tuple[Original, ...]:
    """Return the figures that ``encode_originals`` wrote."""
    return tuple(Original(**value) for value in _load_list(text))


def decode_texts(text: str) -> tuple[str, ...]:
    """Return texts that were written as a JSON array."""
    return tuple(str(value) for value in _load_list(text))


def _load_list(text: str) -> list[Json]:
    found = load_object(f'{{"list":{text}}}')["list"]
    if not isinstance(found, list):
        raise TypeError("expected a JSON array")
    return found

"""The central types as JSON and back. A workload reads as in the engine's specification
(docs/reference/engine-wire.md).

Decoding raises KeyError, TypeError or ValueError on what is not one; the archive turns these into its own
error.

>>> decode_workload(encode_workload(Workload(ClosedLoop(10), CountStop(5)))).describe()
'closed loop, 10 connections, 5 requests'
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from prony.archive.secrets import masked
from prony.model import (
    App,
    Arrivals,
    Check,
    Claim,
    ClaimKind,
    ClosedLoop,
    Contract,
    CountStop,
    Design,
    DurationStop,
    EngineChoice,
    Frontend,
    Interface,
    Json,
    Loop,
    Needs,
    OpenLoop,
    Original,
    Pacing,
    Placement,
    Precision,
    Request,
    SandboxChoice,
    Stop,
    Subject,
    Workload,
)

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
    """Return the JSON object that ``text`` writes; NaN and infinities, which Python would take, are
    refused.
    """
    value = json.loads(text, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise TypeError("expected a JSON object")
    return value


def _encode_bytes(value: bytes | None) -> str | None:
    return None if value is None else b64encode(value).decode("ascii")


def _decode_bytes(value: str | None) -> bytes | None:
    return None if value is None else b64decode(value, validate=True)


def _encode_request(request: Request) -> Json:
    return {
        "method": request.method,
        "path": request.path,
        "headers": masked(request.headers),
        "body": _encode_bytes(request.body),
        "keep_alive": request.keep_alive,
    }


def _decode_request(value: Json) -> Request:
    headers = tuple((name, text) for name, text in value["headers"])
    return Request(value["method"], value["path"], headers, _decode_bytes(value["body"]), value["keep_alive"])


def _encode_loop(loop: Loop) -> Json:
    match loop:
        case ClosedLoop(connections):
            return {"kind": "closed", "connections": connections}
        case OpenLoop(rate_per_s, arrivals, seed, connections):
            return {
                "kind": "open",
                "rate_per_s": rate_per_s,
                "arrivals": arrivals.value,
                "seed": seed,
                "connections": connections,
            }


def _decode_loop(value: Json) -> Loop:
    if value["kind"] == "closed":
        return ClosedLoop(value["connections"])
    if value["kind"] != "open":
        raise ValueError(f"unknown loop `{value['kind']}`")
    return OpenLoop(value["rate_per_s"], Arrivals(value["arrivals"]), value["seed"], value["connections"])


def _encode_stop(stop: Stop) -> Json:
    match stop:
        case DurationStop(duration_ns):
            return {"kind": "duration", "duration_ns": duration_ns}
        case CountStop(requests):
            return {"kind": "requests", "requests": requests}


def _decode_stop(value: Json) -> Stop:
    if value["kind"] == "duration":
        return DurationStop(value["duration_ns"])
    if value["kind"] != "requests":
        raise ValueError(f"unknown stop `{value['kind']}`")
    return CountStop(value["requests"])


def encode_workload(workload: Workload) -> Json:
    """Return a workload as the engine's specification writes it."""
    return {
        "loop": _encode_loop(workload.loop),
        "stop": _encode_stop(workload.stop),
        "warmup_ns": workload.warmup_ns,
        "timeout_ns": workload.timeout_ns,
        "grace_ns": workload.grace_ns,
        "request": _encode_request(workload.request),
        "expect": {"status": workload.expect_status, "body": _encode_bytes(workload.expect_body)},
    }


def decode_workload(value: Json) -> Workload:
    """Return the workload that ``encode_workload`` wrote."""
    return Workload(
        loop=_decode_loop(value["loop"]),
        stop=_decode_stop(value["stop"]),
        request=_decode_request(value["request"]),
        warmup_ns=value["warmup_ns"],
        timeout_ns=value["timeout_ns"],
        grace_ns=value["grace_ns"],
        expect_status=value["expect"]["status"],
        expect_body=_decode_bytes(value["expect"]["body"]),
    )


def _encode_app(app: App) -> Json:
    checks = [
        {"request": _encode_request(check.request), "status": check.status, "body": _encode_bytes(check.body)}
        for check in app.contract.checks
    ]
    # The environment is stored as names only: values may be secrets.
    return {
        "name": app.name,
        "title": app.title,
        "folder": app.folder,
        "targets": {interface.value: target for interface, target in app.targets.items()},
        "requirements": list(app.requirements),
        "checks": checks,
        "environment_names": sorted(app.environment),
        "services": list(app.services),
        "digest": app.digest,
    }


def _decode_app(value: Json) -> App:
    checks = tuple(
        Check(_decode_request(check["request"]), check["status"], _decode_bytes(check["body"]))
        for check in value["checks"]
    )
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
    return {"name": engine.name, "threads": engine.threads, "pacing": engine.pacing.value}


def decode_engine(value: Json) -> EngineChoice:
    """Return the choice that ``encode_engine`` wrote."""
    return EngineChoice(value["name"], value["threads"], Pacing(value["pacing"]))


def encode_sandbox(sandbox: SandboxChoice) -> Json:
    """Return the choice of a sandbox."""
    return {
        "kind": sandbox.kind,
        "network": sandbox.network,
        "share_cpus": sandbox.share_cpus,
        "run_as": sandbox.run_as,
        "cpu_quota": sandbox.cpu_quota,
        "memory_bytes": sandbox.memory_bytes,
        "pids": sandbox.pids,
    }


def decode_sandbox(value: Json) -> SandboxChoice:
    """Return the choice that ``encode_sandbox`` wrote."""
    return SandboxChoice(
        value["kind"],
        value["network"],
        value["share_cpus"],
        value["run_as"],
        # Archives of the first versions have none.
        value.get("cpu_quota"),
        value.get("memory_bytes"),
        value.get("pids"),
    )


def encode_placement(placement: Placement | None) -> str | None:
    """Return the CPUs as JSON text; null stays null."""
    if placement is None:
        return None
    return dump(
        {
            "server_cpus": list(placement.server_cpus),
            "generator_cpus": list(placement.generator_cpus),
            "shared": placement.shared,
        }
    )


def decode_placement(text: str | None) -> Placement | None:
    """Return the placement that ``encode_placement`` wrote."""
    if text is None:
        return None
    value = load_object(text)
    return Placement(tuple(value["server_cpus"]), tuple(value["generator_cpus"]), value["shared"])


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

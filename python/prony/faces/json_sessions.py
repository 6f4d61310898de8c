"""Sessions as JSON with stable keys (`prony report A.prony B.prony --json`)."""

from prony.archive.codec import encode_workload
from prony.faces.json_trend import metrics_json
from prony.model.shapes import Json, encode
from prony.reading.across import LoadOver, SessionPart, Sessions
from prony.reading.trend import SameLoad, same_loads
from prony.report.words import machine_words

VERSION = 1


def sessions_json(title: str, found: Sessions) -> Json:
    """Return the report of several archives as JSON."""
    return {"version": VERSION, "title": title, **across_json(found)}


def across_json(found: Sessions) -> Json:
    """Return sessions beside each other as JSON."""
    return {
        "machines": len(set(found.machines)),
        "sessions": [_part(k, found.machines[k], one) for k, one in enumerate(found.parts)],
        "loads": [_load(found, *both) for both in zip(found.loads, same_loads(found), strict=True)],
        "claims": [
            {
                "name": one.claim.name,
                "text": one.claim.text,
                "verdicts": [verdict.value for verdict in one.verdicts],
                "changes": one.changes,
                "over": one.over.verdict.value,
                "reason": one.over.reason,
            }
            for one in found.claims
        ],
        "versions": {name: list(versions) for name, versions in found.versions.items()},
    }


def _part(place: int, machine: int, one: SessionPart) -> Json:
    return {
        "number": place + 1,
        "archive": one.archive or None,
        "started_unix_ns": one.started_unix_ns,
        "blocks": one.blocks,
        "machine_number": machine,
        "machine": str(machine_words(one.fingerprint)),
    }


def _load(found: Sessions, one: LoadOver, same: SameLoad) -> Json:
    workload = encode_workload(found.parts[0].groups[one.place].workload)
    return {
        "load": {key: value for key, value in workload.items() if key not in ("request", "expect")},
        "metric": one.metric,
        "answer": encode(one.group.answer),
        "leaders": list(one.leaders),
        "rows": encode(one.rows),
        "metrics": metrics_json(same),
    }

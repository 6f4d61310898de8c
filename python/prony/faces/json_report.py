"""A study's report as JSON with stable keys (`prony report FILE --json`). docs/reference/report-json.md
lists them.

Each number of a text report has its value here: `report.text.Figure` names the place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from prony.analysis.answer import Answer
from prony.analysis.claim_parts import ClaimResult
from prony.analysis.displayed import cell_trimmed_mean
from prony.analysis.drift import CALIBRATED
from prony.analysis.editions import Then
from prony.analysis.estimands import estimand
from prony.analysis.missing import Missing, Value
from prony.analysis.steadiness import Steadiness
from prony.analysis.summary import CellSummary, Estimate, TrialFigures
from prony.archive.codec import encode_engine, encode_sandbox, encode_workload
from prony.diagnosis import Diagnosis
from prony.faces.json_answer import answer_json
from prony.faces.json_diagnosis import diagnosis_json, finding_json
from prony.faces.json_sessions import across_json
from prony.faces.json_sweeps import sweep_json
from prony.metrics import METRICS
from prony.model.claims import Claim
from prony.model.plan import Plan
from prony.model.records import SubjectRecord
from prony.model.shapes import Json, encode
from prony.model.trial import Failed, Invalid, Outcome, TrialRole
from prony.reading.causes import Cause
from prony.reading.checks import Calibrations, CrossCheck
from prony.reading.failures import (
    Attempts,
    FailedRequests,
    FailureTest,
    Repeated,
    failed_alike,
    failed_by_class,
)
from prony.reading.findings import Found
from prony.reading.groups import Group
from prony.reading.originals import Beside
from prony.reading.pace import fullest_addresses
from prony.reading.paths import CellPath, cell_paths
from prony.reading.saturation import Curve
from prony.reading.study import Reading
from prony.report.findings import limit_words

VERSION = 1


def _estimate(value: Estimate | Missing) -> Json:
    if isinstance(value, Missing):
        return {"missing": value.reason}
    return asdict(value)


def _estimates(metrics: Mapping[str, Estimate | Missing]) -> Json:
    return {name: _estimate(value) for name, value in metrics.items()}


def _known(value: Value) -> float | None:
    return None if isinstance(value, Missing) else value


# --- cells ------------------------------------------------------------------------------------------------


def _trial(trial: TrialFigures) -> Json:
    own = {"block": trial.block, "attempt": trial.attempt}
    return {**own, **_outcome(trial.outcome), "log": trial.log.text}


def _outcome(outcome: Outcome) -> Json:
    match outcome:
        case Failed(stage, reason):
            return {"outcome": "failed", "stage": stage, "reason": reason}
        case Invalid(reason):
            return {"outcome": "invalid", "stage": None, "reason": reason}
        case _:
            return {"outcome": "ok", "stage": None, "reason": None}


def _cell(cell: CellSummary, diagnosis: Diagnosis | None) -> Json:
    return {
        "cell_id": cell.cell.id,
        "name": cell.name,
        "subject": cell.cell.subject.name,
        "workload": encode_workload(cell.cell.workload),
        "trials_ok": cell.ok,
        "trials": cell.total,
        "qualified": cell.unqualified is None,
        "unqualified_reason": cell.unqualified,
        "generator_limited": None if cell.limited is None else str(limit_words(cell.limited, "")),
        "at_least": cell.at_least,
        "generator_share": cell.generator_share,
        "error_ratio": cell.error_ratio,
        "success_ratio": cell.success_ratio,
        "censored_from": cell.censored_from,
        "account": cell.account.by_key,
        "carried_in": encode(cell.account.carried_in),
        "failed_requests": [_failed_requests(one) for one in failed_by_class(cell)],
        "metrics": _estimates(cell.metrics),
        "roles": {role: _estimates(metrics) for role, metrics in cell.roles.items()},
        "tls": None if cell.tls is None else asdict(cell.tls),
        "tls_differs": [asdict(one) for one in cell.tls_differs],
        "by_block": {
            str(block): {name: _known(value) for name, value in metrics.items()}
            for block, metrics in cell.by_block.items()
        },
        "trimmed_mean": {name: _known(cell_trimmed_mean(cell, name)) for name in METRICS},
        "pace": {str(trial.block): _pace(trial) for trial in cell.counted},
        "steadiness": _steadiness(cell.steadiness),
        "listeners": {str(trial.block): [asdict(one) for one in trial.listeners] for trial in cell.counted},
        "shared_addresses": [asdict(one) for one in fullest_addresses(cell)],
        "uncounted": [_trial(trial) for trial in cell.others],
        "failed_alike": [{"blocks": list(one.blocks), **_cause(one.cause)} for one in failed_alike(cell)],
        "diagnosis": diagnosis_json(diagnosis),
        # Only of a mix: all else that reads this knows one path.
        **({"paths": [_path(one) for one in cell_paths(cell)]} if cell.cell.workload.mix else {}),
    }


def _path(one: CellPath) -> Json:
    own = {name: getattr(one, name) for name in ("path", "weight", "asked", "share", "censored_from")}
    account = {
        "requests": one.account.requests,
        "errors": one.account.lost,
        "account": one.account.by_key,
        "carried_in": encode(one.account.carried_in),
    }
    return {**own, **account, "of": f"{one.kind}_ns", "percentiles": _estimates(one.percentiles)}


def _failed_requests(found: FailedRequests) -> Json:
    keys = [one.key for one in found.endings]
    return {"classes": keys, "requests": found.requests, "share": found.share, "carried_in": found.carried_in}


def _cause(cause: Cause) -> Json:
    fault = None if cause.fault is None else cause.fault.value
    return {
        **_outcome(cause.outcome),
        "fault": fault,
        "low": cause.low,
        "high": cause.high,
        "also": cause.also,
    }


def _steadiness(found: Steadiness | Missing) -> Json:
    if isinstance(found, Missing):
        return {"missing": found.reason}
    return {**asdict(found), "kind": found.kind.value}


def _pace(trial: TrialFigures) -> Json:
    """Return how the pace of a trial developed: its kind and its levels, or why that is unknown."""
    if isinstance(trial.steady, Missing):
        return {"missing": trial.steady.reason}
    return {
        "kind": trial.steady.kind.value,
        "levels": [
            {"start_s": one.start, "end_s": one.end, "mean": one.mean} for one in trial.steady.segments
        ],
    }


# --- groups -----------------------------------------------------------------------------------------------


def _answer(found: Answer, subjects: Mapping[str, SubjectRecord]) -> Json:
    record = subjects.get(found.leader or "")
    return {**encode(found), "command_line": None if record is None else record.command_line}


def _group(group: Group, reading: Reading) -> Json:
    return {
        "load": {
            key: value
            for key, value in encode_workload(group.workload).items()
            if key not in ("request", "expect")
        },
        "engine": encode_engine(group.engine),
        "sandbox": encode_sandbox(group.sandbox),
        "cells": [_cell(cell, reading.diagnoses.get(cell.cell.id)) for cell in group.cells],
        "primary": group.primary,
        "of_generators": group.of_generators,
        "asks": group.asks,
        "most_per_s": reading.most_per_s(group),
        "standings": [{**asdict(one), "decided": one.decided} for one in group.standings],
        "answer": _answer(group.answer, reading.subjects),
        "failures": [_failure_test(one) for one in group.failures],
        "stalls": {name: {**asdict(one), "trials": one.trials} for name, one in group.stalls.items()},
        "power": None if group.power is None else asdict(group.power),
    }


def _failure_test(one: FailureTest) -> Json:
    return {**asdict(one), "shown": one.shown}


def _curve(curve: Curve, reading: Reading) -> Json:
    return {
        "groups": [reading.place(group) for group in curve.groups],
        "over": curve.over,
        "latency": curve.latency,
        "subjects": {name: asdict(found) for name, found in curve.subjects.items()},
    }


# --- comparisons, causes ---------------------------------------------------------------------------------


def _claim(claim: Claim, result: ClaimResult, then: Then | None) -> Json:
    return {
        **asdict(claim),
        "kind": claim.kind.value,
        "estimand": estimand(claim),
        "verdict": result.verdict.value,
        "lack": None if result.lack is None else result.lack.value,
        "n": result.n,
        "figure": result.figure,
        "interval": None if result.interval is None else list(result.interval),
        "level": result.level,
        "one_sided": result.one_sided,
        "reason": result.reason or None,
        "then": None if then is None else encode(then),
    }


def _beside(one: Beside) -> Json:
    """Return a published figure with the figure of the cell that repeats it."""
    return {
        "cell_id": one.cell.cell.id,
        "name": one.cell.name,
        "metric": one.original.metric,
        "role": one.original.role or None,
        "published": one.original.value,
        "measured": _estimate(one.measured),
        "note": one.original.note or None,
    }


def _check(check: CrossCheck) -> Json:
    return {
        "cell_id": check.own.cell.id,
        "check_cell_id": check.other.cell.id,
        "name": check.own.name,
        "generator": check.other.cell.engine.name,
        "metric": check.metric,
        "own": _estimate(check.own.metrics[check.metric]),
        "other": _estimate(check.other.metrics[check.metric]),
        "comparison": encode(check.comparison),
    }


def _finding(found: Found) -> Json:
    return {"subject": found.subject, **finding_json(found.finding), "trials": found.trials, "of": found.of}


# --- the study --------------------------------------------------------------------------------------------


def _plan(plan: Plan) -> Json:
    return {
        "name": plan.name,
        "title": plan.title,
        "question": plan.question,
        "profile": plan.profile,
        "blocks": plan.blocks,
        "cells": len(plan.cells),
        "seed": plan.seed,
        "source": plan.source,
        "notes": list(plan.notes),
        "design": {**asdict(plan.design), "confirm": list(plan.design.confirm)},
    }


def _subject(record: SubjectRecord) -> Json:
    return {
        "server_version": record.server_version,
        "interpreter": record.interpreter,
        "packages": dict(record.packages),
        "lock_digest": record.lock_digest,
        "settings": dict(record.settings),
        "command_line": record.command_line,
        "sandbox": encode(record.sandbox),
        "facts": encode(record.facts),
        "unavailable": record.unavailable,
    }


def _calibration(trial: TrialFigures) -> Json:
    metrics = {name: _known(trial.metrics[name]) for name in CALIBRATED}
    return {**_position(trial), "metrics": metrics}


def _drift(found: Calibrations) -> Json:
    drifts = {name: asdict(one) for name, one in found.drifts.items()}
    return {"trials": found.trials, "counted": found.counted, "uncounted": found.uncounted, "metrics": drifts}


def _repeated(found: Repeated) -> Json:
    return {"trials": found.trials, "causes": _causes(found.causes)}


def _search(found: Attempts) -> Json:
    return {"trials": found.trials, "disturbed": found.disturbed, "causes": _causes(found.causes)}


def _causes(found: Sequence[tuple[Cause, int]]) -> list[Json]:
    return [{**_cause(cause), "trials": count} for cause, count in found]


def _position(trial: TrialFigures) -> Json:
    return {
        "cell_id": trial.cell_id,
        "role": trial.role.value,
        "block": trial.block,
        "position": trial.position,
        "attempt": trial.attempt,
        "started_unix_ns": trial.started_unix_ns,
        **_outcome(trial.outcome),
    }


def reading_json(reading: Reading) -> Json:
    """Return the report of a study as JSON. A missing value is null or names its
    reason.
    """
    calibrations, repeated, order_effect = reading.calibrations, reading.repeated, reading.order_effect
    of_calibration = [trial for trial in reading.trials if trial.role is TrialRole.CALIBRATION]
    return {
        "version": VERSION,
        "answer": answer_json(reading),
        "plan": _plan(reading.plan),
        "runs": encode(reading.runs),
        "fingerprint": encode(reading.fingerprint),
        "subjects": {name: _subject(record) for name, record in reading.subjects.items()},
        "extent": {
            "blocks": reading.blocks,
            "sessions": reading.sessions,
            "trials": {role.value: reading.count(role) for role in TrialRole},
            "limited": {
                "of": sum(reading.limited.values()),
                **{level.value: found for level, found in reading.limited.items()},
            },
        },
        "placements": [asdict(placement) for placement in reading.placements],
        "groups": [_group(group, reading) for group in reading.groups],
        "curves": [_curve(curve, reading) for curve in reading.curves],
        "sweeps": [sweep_json(one) for one in reading.sweeps],
        "claims": [_claim(claim, result, reading.then.get(claim.name)) for claim, result in reading.claims],
        "verdicts": {verdict.value: count for verdict, count in reading.verdicts.items()},
        "then_verdicts": {change.value: count for change, count in reading.then_verdicts.items()},
        "originals": [_beside(one) for one in reading.originals],
        "calibration": [_calibration(trial) for trial in of_calibration],
        "drift": None if calibrations is None else _drift(calibrations),
        "dependence": None if reading.dependence is None else asdict(reading.dependence),
        "across": None if reading.across is None else across_json(reading.across),
        "cross_checks": [_check(check) for check in reading.cross_checks],
        "found_rates": encode(reading.found_rates),
        "search": None if reading.search is None else _search(reading.search),
        "warm_ups": encode(reading.warm_ups),
        "machines": encode(reading.machines),
        "repeated": None if repeated is None else _repeated(repeated),
        "unmeasured": dict(reading.unmeasured),
        "order": [
            _position(trial) | asdict(placed)
            for trial, placed in zip(reading.trials, reading.order, strict=True)
        ],
        "order_effect": encode(order_effect),
        "findings": [_finding(found) for found in reading.findings],
        "shared_findings": [
            {"subjects": one.subjects, "findings": one.found, "trials": one.trials, "of": one.of}
            for one in reading.shared_findings
        ],
    }

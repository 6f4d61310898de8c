"""A study's report as JSON with stable keys (`prony report FILE --json`). docs/reference/report-json.md
lists them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from prony.analysis.answer import Answer
from prony.analysis.claims import ClaimResult
from prony.analysis.displayed import cell_trimmed_mean
from prony.analysis.drift import CALIBRATED
from prony.analysis.missing import Missing, Value
from prony.analysis.noise_floor import Floor
from prony.analysis.summary import CellSummary, Estimate, TrialFigures
from prony.archive import Archive
from prony.archive.codec import encode_engine, encode_sandbox, encode_workload
from prony.metrics import METRICS
from prony.model import Claim, Failed, Invalid, Json, Original, SubjectRecord, TrialRole
from prony.model.shapes import encode
from prony.reading.study import Group, Reading, read_archive
from prony.report.sections.checks import Check, cross_checks
from prony.report.sections.originals import beside, measured
from prony.report.sections.rates import found_rates

__all__ = ["VERSION", "reading_json", "report_json"]

VERSION = 1


def _estimates(metrics: Mapping[str, Estimate | Missing]) -> Json:
    return {
        name: {"missing": value.reason} if isinstance(value, Missing) else asdict(value)
        for name, value in metrics.items()
    }


def _trial(trial: TrialFigures) -> Json:
    return {"block": trial.block, "attempt": trial.attempt, **_outcome(trial), "log": trial.log.text}


def _outcome(trial: TrialFigures) -> Json:
    match trial.outcome:
        case Failed(stage, reason):
            return {"outcome": "failed", "stage": stage, "reason": reason}
        case Invalid(reason):
            return {"outcome": "invalid", "stage": None, "reason": reason}
        case _:
            return {"outcome": "ok", "stage": None, "reason": None}


def _cell(cell: CellSummary) -> Json:
    return {
        "cell_id": cell.cell.id,
        "name": cell.name,
        "subject": cell.cell.subject.name,
        "workload": encode_workload(cell.cell.workload),
        "trials_ok": cell.ok,
        "trials": cell.total,
        "qualified": cell.unqualified is None,
        "unqualified_reason": cell.unqualified,
        "generator_limited": cell.limited,
        "error_ratio": cell.error_ratio,
        "censored_from": cell.censored_from,
        "account": dict(cell.account),
        "metrics": _estimates(cell.metrics),
        "roles": {role: _estimates(metrics) for role, metrics in cell.roles.items()},
        "by_block": {
            str(block): {
                name: None if isinstance(value, Missing) else value for name, value in metrics.items()
            }
            for block, metrics in cell.by_block.items()
        },
        "trimmed_mean": {name: _known(cell_trimmed_mean(cell, name)) for name in METRICS},
        "pace": {str(trial.block): _pace(trial) for trial in cell.counted},
        "listeners": {str(trial.block): [asdict(one) for one in trial.listeners] for trial in cell.counted},
        "uncounted": [_trial(trial) for trial in cell.others],
    }


def _known(value: Value) -> float | None:
    return None if isinstance(value, Missing) else value


def _pace(trial: TrialFigures) -> Json:
    """Return how the pace of a trial developed: its kind and its levels, or why that cannot be said."""
    if isinstance(trial.steady, Missing):
        return {"missing": trial.steady.reason}
    return {
        "kind": trial.steady.kind.value,
        "levels": [
            {"start_s": one.start, "end_s": one.end, "mean": one.mean} for one in trial.steady.segments
        ],
    }


def _answer(found: Answer, subjects: Mapping[str, SubjectRecord]) -> Json:
    record = subjects.get(found.leader or "")
    return {
        "metric": found.metric,
        "leader": found.leader,
        "ties": list(found.ties),
        "blocks": found.blocks,
        "decided": found.decided,
        "reason": found.reason,
        "command_line": None if record is None else record.command_line,
        "comparisons": {
            name: {**asdict(comparison), "verdict": comparison.verdict.value}
            for name, comparison in found.comparisons.items()
        },
    }


def _group(group: Group, subjects: Mapping[str, SubjectRecord]) -> Json:
    return {
        "load": {
            key: value
            for key, value in encode_workload(group.workload).items()
            if key not in ("request", "expect")
        },
        "engine": encode_engine(group.engine),
        "sandbox": encode_sandbox(group.sandbox),
        "cells": [_cell(cell) for cell in group.cells],
        "noise_floor": group.noise_floor or None,
        "primary": group.primary,
        "of_generators": group.of_generators,
        "standings": [{**asdict(one), "decided": one.decided} for one in group.standings],
        "answer": _answer(group.answer, subjects),
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


def _claim(claim: Claim, result: ClaimResult) -> Json:
    return {
        **asdict(claim),
        "kind": claim.kind.value,
        "verdict": result.verdict.value,
        "n": result.n,
        "figure": result.figure,
        "interval": None if result.interval is None else list(result.interval),
        "reason": result.reason or None,
    }


def _beside(original: Original, cell: CellSummary) -> Json:
    """Return a published figure with the figure of the cell that repeats it."""
    found = _estimates({original.metric: measured(original, cell)})[original.metric]
    return {
        "cell_id": cell.cell.id,
        "name": cell.name,
        "metric": original.metric,
        "role": original.role or None,
        "published": original.value,
        "measured": found,
        "note": original.note or None,
    }


def _of_role(reading: Reading, role: TrialRole) -> list[TrialFigures]:
    return [trial for trial in reading.trials if trial.role is role]


def _calibration(trial: TrialFigures) -> Json:
    metrics = {name: _known(trial.metrics[name]) for name in CALIBRATED}
    return {**_position(trial), "metrics": metrics}


def _position(trial: TrialFigures) -> Json:
    return {
        "cell_id": trial.cell_id,
        "role": trial.role.value,
        "block": trial.block,
        "position": trial.position,
        "attempt": trial.attempt,
        "started_unix_ns": trial.started_unix_ns,
        **_outcome(trial),
    }


def _check(check: Check) -> Json:
    own, other, metric, comparison = check
    return {
        "cell_id": own.cell.id,
        "check_cell_id": other.cell.id,
        "name": own.name,
        "generator": other.cell.engine.name,
        "metric": metric,
        "own": _estimates({metric: own.metrics[metric]})[metric],
        "other": _estimates({metric: other.metrics[metric]})[metric],
        "comparison": {**asdict(comparison), "verdict": comparison.verdict.value},
    }


def reading_json(reading: Reading) -> Json:
    """Return the report of a study that has been read, as JSON. A missing value is null or names its
    reason.
    """
    plan = reading.plan
    return {
        "version": VERSION,
        "plan": {
            "name": plan.name,
            "title": plan.title,
            "question": plan.question,
            "profile": plan.profile,
            "blocks": plan.blocks,
            "seed": plan.seed,
            "source": plan.source,
            "notes": list(plan.notes),
            "design": asdict(plan.design),
        },
        "runs": encode(reading.runs),
        "fingerprint": encode(reading.fingerprint),
        "subjects": {name: _subject(record) for name, record in reading.subjects.items()},
        "groups": [_group(group, reading.subjects) for group in reading.groups],
        "claims": [_claim(claim, result) for claim, result in reading.claims],
        "originals": [_beside(original, cell) for original, cell in beside(reading)],
        "calibration": [_calibration(trial) for trial in _of_role(reading, TrialRole.CALIBRATION)],
        "cross_checks": [_check(check) for check in cross_checks(reading)],
        "found_rates": encode(found_rates(reading)),
        "order": [_position(trial) for trial in reading.trials],
        "findings": [
            {
                "subject": found.subject,
                "rule": found.finding.rule,
                "confidence": found.finding.confidence.value,
                "sentence": found.finding.sentence,
                "numbers": dict(found.finding.numbers),
                "advice": found.finding.advice,
                "trials": found.trials,
                "of": found.of,
            }
            for found in reading.findings
        ],
    }


def report_json(archive: Archive, floors: Sequence[Floor] = ()) -> Json:
    """Return the report of a study from its archive, as JSON; ``floors`` as `read_archive`."""
    return reading_json(read_archive(archive, floors))

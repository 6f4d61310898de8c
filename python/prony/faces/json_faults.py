"""Planted faults and what was named of them, as JSON (`prony selftest diagnosis --json`)."""

from collections.abc import Sequence
from dataclasses import asdict

from prony.faults import CAUSES, DOUBLES, PlanPart
from prony.faults.coverage import Coverage, coverage_of
from prony.faults.dominance import JudgedDouble, judge_doubles, share_of
from prony.faults.judge import JudgedPlant, Named, lost_causes
from prony.faults.matrix import CauseRow, Macro, Matrix, Share, matrix_of
from prony.faults.sessions import SessionFacts
from prony.model import Json

__all__ = ["VERSION", "faults_json"]

VERSION = 1


def faults_json(
    archive: str,
    judged: Sequence[JudgedPlant],
    sessions: Sequence[SessionFacts] = (),
    outdated: Sequence[str] = (),
    rootless: Sequence[JudgedPlant] = (),
) -> Json:
    """Return what became of each plant, and the matrix of each part and of all. ``archive``: where they were
    read, in words; the rest as `prony.report.faults.faults_document`.
    """
    doubles = judge_doubles(DOUBLES, judged)
    return {
        "version": VERSION,
        "archive": archive,
        "sessions": [_session(one, sessions) for one in sessions],
        "outdated": list(outdated),
        "coverage": [_coverage(one) for one in coverage_of(CAUSES)],
        "rootless": _rootless(rootless),
        "parts": {
            "held_out": _matrix(matrix_of(judged, CAUSES, PlanPart.HELD_OUT)),
            "calibration": _matrix(matrix_of(judged, CAUSES, PlanPart.CALIBRATION)),
            "museum": _matrix(matrix_of(judged, CAUSES, PlanPart.MUSEUM)),
            "all": _matrix(matrix_of(judged, CAUSES)),
        },
        "doubles": {"right": _share(share_of(doubles)), "each": [_double(one) for one in doubles]},
        "plants": [_plant(one) for one in judged],
    }


def _rootless(judged: Sequence[JudgedPlant]) -> Json | None:
    """Return what an ordinary user observed; null where nobody did."""
    hurt, lost = {one.plant.cause.name for one in judged if one.hurt}, lost_causes(judged)
    if not judged:
        return None
    plants = [_plant(one) for one in judged]
    return {"causes": len(hurt), "named": len(hurt) - len(lost), "lost": list(lost), "plants": plants}


def _coverage(one: Coverage) -> Json:
    """Return where a cause is planted: the servers of each kind, and why a kind cannot have it."""
    servers = {kind.value: list(names) for kind, names in one.servers.items()}
    return {
        "cause": one.cause.name,
        "title": one.cause.title,
        "rule": one.cause.rule,
        "servers": servers,
        "calibrated_on": sorted(one.calibrated_on),
        "cannot": {kind.value: why for kind, why in one.cannot.items()},
    }


def _session(one: SessionFacts, sessions: Sequence[SessionFacts]) -> Json:
    of_machine = sum(other.machine_key == one.machine_key for other in sessions)
    return {**asdict(one), "of_machine": of_machine}


def _double(one: JudgedDouble) -> Json:
    return {
        "double": one.double.name,
        "first": one.first,
        "second": one.second,
        "dominant": None if one.dominant is None else one.dominant.name,
        "right": None if one.right is None else _share(one.right),
        "named": [None if trial.symptom is None else trial.symptom.value for trial in one.trials],
    }


def _matrix(found: Matrix) -> Json:
    return {
        "recall": _macro(found.recall),
        "precision": _macro(found.precision),
        "healthy": dict(found.healthy),
        "false_certain": _share(found.false_certain),
        "disturbed": found.disturbed,
        "causes": [_row(one) for one in found.rows],
    }


def _row(one: CauseRow) -> Json:
    return {
        "cause": one.cause.name,
        "title": one.cause.title,
        "rule": one.cause.rule,
        "plants": one.plants,
        "tried": one.tried,
        "named": dict(one.named),
        "recall": _share(one.recall),
        "precision": _share(one.precision),
    }


def _share(one: Share) -> Json:
    low, high = one.interval
    return {"count": one.count, "total": one.total, "low": low, "high": high}


def _macro(one: Macro) -> Json:
    return {"value": one.value, "low": one.low, "high": one.high}


def _plant(one: JudgedPlant) -> Json:
    return {
        "plant": one.plant.name,
        "cause": one.plant.cause.name,
        "server": one.plant.server.name,
        "kind": one.plant.server.kind.value,
        "level": one.plant.level,
        "part": one.plant.part.value,
        "hurt": one.hurt,
        "disturbed": one.disturbed,
        "generator_cpus": one.generator_cpus,
        "faulty": [_named(trial) for trial in one.faulty],
        "healthy": [_named(trial) for trial in one.healthy],
    }


def _named(one: Named) -> Json:
    return {
        "block": one.block,
        "named": None if one.symptom is None else one.symptom.value,
        "known": one.known,
        "certain": [kind.value for kind in one.certain],
    }

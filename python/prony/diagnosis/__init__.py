"""The causes behind figures: one rule per file, from Evidence to findings. Pure.

This list of rules is the only one. Must not know reports.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from prony.diagnosis.busy_slots import busy_slots
from prony.diagnosis.clipped_backlog import clipped_backlog
from prony.diagnosis.closed_after_each import closed_after_each
from prony.diagnosis.conclusion import (
    Diagnosis,
    DiagnosisKind,
    Frequent,
    Observed,
    conclude,
    confirmed,
    typical,
)
from prony.diagnosis.confirmation import Agreement, Confirmation
from prony.diagnosis.connect_ladder import connect_ladder
from prony.diagnosis.connection_cap import connection_cap
from prony.diagnosis.consumption import Resource, consumption_of
from prony.diagnosis.crowded import crowded
from prony.diagnosis.debugging import debugging
from prony.diagnosis.descriptors import descriptors
from prony.diagnosis.disk import disk
from prony.diagnosis.downstream import downstream
from prony.diagnosis.dropped_connects import dropped_connects
from prony.diagnosis.earlier_trials import earlier_trials
from prony.diagnosis.evidence import (
    Advice,
    Affected,
    Confidence,
    Consequence,
    Evidence,
    Experiment,
    Finding,
    Rule,
    Symptom,
)
from prony.diagnosis.forks import forks
from prony.diagnosis.generator_limited import generator_limited
from prony.diagnosis.growing_pool import growing_pool
from prony.diagnosis.heat import heat
from prony.diagnosis.held_back import held_back
from prony.diagnosis.killed import killed
from prony.diagnosis.knobs import Knob, Owner, knob_of
from prony.diagnosis.listen_queue import listen_queue
from prony.diagnosis.littles_law import littles_law
from prony.diagnosis.lock_held import lock_held
from prony.diagnosis.meaning import MEANINGS, TURNED
from prony.diagnosis.memory_growth import memory_growth
from prony.diagnosis.memory_pressure import memory_pressure
from prony.diagnosis.moved_pages import moved_pages
from prony.diagnosis.network_limit import network_limit
from prony.diagnosis.one_core import one_core
from prony.diagnosis.other_programs import other_programs
from prony.diagnosis.overload import overload
from prony.diagnosis.refused import refused
from prony.diagnosis.restarted import restarted
from prony.diagnosis.server_ports import server_ports
from prony.diagnosis.shared_cpus import shared_cpus
from prony.diagnosis.silent_after_one import silent_after_one
from prony.diagnosis.starvation import starved
from prony.diagnosis.still_cold import still_cold
from prony.diagnosis.stolen_time import stolen_time
from prony.diagnosis.throttled import throttled
from prony.diagnosis.tracking_full import tracking_full
from prony.diagnosis.uneven_workers import uneven_workers
from prony.diagnosis.wrong_replies import wrong_replies
from prony.model.trial import Ok

__all__ = [
    "MEANINGS",
    "RULES",
    "Advice",
    "Affected",
    "Agreement",
    "Confidence",
    "Confirmation",
    "Consequence",
    "Diagnosis",
    "DiagnosisKind",
    "Evidence",
    "Experiment",
    "Finding",
    "Frequent",
    "Observed",
    "Resource",
    "Rule",
    "Symptom",
    "conclude",
    "confirmed",
    "diagnose",
    "observe",
    "typical",
]

RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "D38": refused,
        "D31": wrong_replies,
        "D33": debugging,
        "D39": littles_law,
        "D23": generator_limited,
        "D24": shared_cpus,
        "D19": killed,
        "D22": restarted,
        "D08": descriptors,
        "D06": earlier_trials,
        "D05": server_ports,
        "D07": tracking_full,
        "D14": throttled,
        "D01": listen_queue,
        "D03": clipped_backlog,
        "D02": dropped_connects,
        "D04": connect_ladder,
        "D11": silent_after_one,
        "D09": connection_cap,
        "D10": starved,
        "D25": network_limit,
        "D26": stolen_time,
        "D27": heat,
        "D29": moved_pages,
        "D28": other_programs,
        "D20": memory_pressure,
        "D37": growing_pool,
        "D30": held_back,
        "D42": forks,
        "D34": disk,
        "D35": downstream,
        "D16": lock_held,
        "D18": uneven_workers,
        "D13": one_core,
        "D17": busy_slots,
        "D36": crowded,
        "D40": still_cold,
        "D21": memory_growth,
        "D41": overload,
        "D12": closed_after_each,
    }
)
"""In the order in which reports show their findings: first faults of the bench, then death, limits,
queues, the machine, and last resources that the server did not use.
"""


def diagnose(evidence: Evidence) -> list[Finding]:
    """Return the findings of all rules in one trial, each with the subject's setting that it is about."""
    found = (finding for rule in RULES.values() for finding in rule(evidence))
    return [replace(finding, knob=_knob(finding, evidence)) for finding in found]


def observe(evidence: Evidence) -> Observed:
    """Return the findings in one trial, and what it used where it ran its window."""
    usage = consumption_of(evidence) if isinstance(evidence.trial.outcome, Ok) else None
    return Observed(tuple(diagnose(evidence)), usage)


def _knob(finding: Finding, evidence: Evidence) -> Knob | None:
    """Return the setting that the finding's advice turns, of the part that the finding is about."""
    if finding.advice is None or evidence.subject is None:
        return None
    facts, turned = evidence.subject.facts, TURNED.get(finding.advice, ())
    owner = _owner(finding, behind=facts.frontend is not None)
    if owner is None:
        return None
    known = [one for each in turned if (one := knob_of(facts, each, owner)) is not None]
    # A server with one thread in each worker is meant to have more workers.
    several = (one for one in known if one.value != 1)
    return next(several, known[-1] if known else None)


_OF_CONNECTIONS = (Symptom.CLOSED_AFTER_EACH, Symptom.SILENT_AFTER_ONE, Symptom.CONNECTION_CAP)
_OF_EITHER = (Symptom.STARVED, Symptom.STARVED_BY_SLOTS)


def _owner(finding: Finding, *, behind: bool) -> Owner | None:
    """Return which part of a subject a finding is about; null: a service, or nobody knows.

    ``behind``: a frontend is before the server. The clients' connections are then the frontend's. Who lets
    them starve is not known; nor which of two queues overflowed, but where a sample shows one full.
    """
    process, role = finding.names.get("process"), finding.names.get("role", "")
    if process == "frontend" or role.startswith("frontend"):
        return Owner.FRONTEND
    unseen = finding.kind is Symptom.QUEUE_OVERFLOWED and "limit" not in finding.numbers
    if process is not None or (behind and (finding.kind in _OF_EITHER or unseen)):
        return None
    return Owner.FRONTEND if behind and finding.kind in _OF_CONNECTIONS else Owner.SERVER

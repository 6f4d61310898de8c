"""The causes behind figures: rules from Evidence to findings. Pure.

`prony.diagnosis.rules` lists them; those of one subject are in one file.
"""

from dataclasses import replace

from prony.diagnosis.conclusion import Observed
from prony.diagnosis.consumption import consumption_of
from prony.diagnosis.evidence import Evidence, Finding
from prony.diagnosis.kinds import Concerns
from prony.diagnosis.knobs import Knob, Owner, knob_of
from prony.diagnosis.listen_queue import QUEUE_OVERFLOWED
from prony.diagnosis.rules import RULES


def diagnose(evidence: Evidence) -> list[Finding]:
    """Return the findings of all rules in one trial, each with the subject's setting that it is about."""
    return [
        replace(finding, rule=name, knob=_knob(finding, evidence))
        for name, rule in RULES.items()
        for finding in rule(evidence)
    ]


def observe(evidence: Evidence) -> Observed:
    """Return the findings in one trial, and what it used where it ran its window."""
    usage = consumption_of(evidence) if evidence.is_ok else None
    return Observed(tuple(diagnose(evidence)), usage)


def _knob(finding: Finding, evidence: Evidence) -> Knob | None:
    """Return the setting that the finding's advice turns, of the part that the finding is about."""
    if finding.advice is None or evidence.subject is None:
        return None
    facts, turned = evidence.subject.facts, finding.advice.turned
    owner = _owner(finding, behind=facts.frontend is not None)
    if owner is None:
        return None
    known = [one for each in turned if (one := knob_of(facts, each, owner)) is not None]
    # A server with one thread in each worker is meant to have more workers.
    several = (one for one in known if one.value != 1)
    return next(several, known[-1] if known else None)


def _owner(finding: Finding, *, behind: bool) -> Owner | None:
    """Return which part of a subject a finding is about; None: a service, or nobody knows.

    ``behind``: a frontend is before the server. The clients' connections are then the frontend's. Who lets
    them starve is not known; nor which of two queues overflowed, but where a sample shows one full.
    """
    process, role = finding.names.get("process"), finding.names.get("role", "")
    if process == "frontend" or role.startswith("frontend"):
        return Owner.FRONTEND
    concerned = finding.kind.traits.concerns
    unseen = finding.kind is QUEUE_OVERFLOWED and "limit" not in finding.numbers
    if process is not None or (behind and (concerned is Concerns.EITHER or unseen)):
        return None
    return Owner.FRONTEND if behind and concerned is Concerns.CLIENTS else Owner.SERVER

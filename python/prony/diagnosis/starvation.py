"""D10: only some connections were answered in the window.

*Source*: cheroot issue 91; cherrypy issues 1344 and 1764.
"""

from prony.analysis.starvation import starvation
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.model import Ok, SubjectFacts

__all__ = ["starved"]


def starved(evidence: Evidence) -> list[Finding]:
    """Return a finding when a closed loop's connections starved in a trial that ran its window."""
    found = starvation(evidence.trial.recording)
    if found is None or not isinstance(evidence.trial.outcome, Ok):
        return []
    facts = evidence.subject.facts if evidence.subject else SubjectFacts()
    slots, kept = facts.declared.slots, facts.declared.keep_alive is True
    why = ", as many as it has workers and threads" if slots == found.served else ""
    return [
        Finding(
            rule="D10",
            confidence=Confidence.CERTAIN,
            sentence=f"only {found.served:,} of {found.connections:,} connections were answered in the window"
            f"{why}: speed and latency are of those alone",
            numbers={"served": found.served, "connections": found.connections},
            advice=f"give it more workers or threads{', turn keep-alive off' if kept else ''}"
            ", or put a proxy in front",
        )
    ]

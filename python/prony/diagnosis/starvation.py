"""D10: only some connections were ever answered.

*Source*: cheroot issue 91; cherrypy issues 1344 and 1764.
"""

from prony.analysis.starvation import starvation
from prony.diagnosis.evidence import Confidence, Evidence, Finding

__all__ = ["starved"]


def starved(evidence: Evidence) -> list[Finding]:
    """Return a finding when more than a tenth of a closed loop's connections got no reply in the window."""
    found = starvation(evidence.trial.recording)
    if found is None:
        return []
    slots = evidence.subject.facts.get("slots") if evidence.subject else None
    why = ", as many as it has workers and threads" if slots == found.served else ""
    return [
        Finding(
            rule="D10",
            confidence=Confidence.CERTAIN,
            sentence=f"only {found.served} of {found.connections} connections were ever answered{why}: "
            "speed and latency are of those alone",
            numbers={"served": found.served, "connections": found.connections},
            advice="give it more workers or threads, turn keep-alive off, or put a proxy in front",
        )
    ]

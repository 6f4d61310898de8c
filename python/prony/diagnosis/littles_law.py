"""D39: the generator's own figures contradict each other, so that they cannot all be true.

Such a trial does not count (`analysis.validity`); what its server did is then not known.
*Source*: Little's law, as there: requests in flight are their rate times the time of each.
"""

from prony.analysis.validity import off_little
from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom


def littles_law(evidence: Evidence) -> list[Finding]:
    """Return a finding when requests in flight differ from rate times latency by more than a tenth."""
    recording = evidence.trial.recording
    residual = None if recording is None else off_little(recording)
    if residual is None:
        return []
    return [
        Finding(
            rule="D39",
            kind=Symptom.FIGURES_CONTRADICT,
            confidence=Confidence.CERTAIN,
            numbers={"off": abs(residual)},
            advice=Advice.CROSS_CHECK,
            shareable=True,
        )
    ]

"""D39: the generator's own figures contradict each other, so that they cannot all be true.

Such a trial does not count (`figures.validity`); what its server did is then not known.
*Source*: Little's law, as there: requests in flight are their rate times the time of each.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom, Traits
from prony.figures.validity import off_little

OF_NOTHING = Consequence("of nothing", "none of its figures counts")
OTHER_GENERATOR = Experiment(
    "another generator", "measure with another generator; its figures agree with each other"
)
CROSS_CHECK = Advice(
    "another generator beside it", "measure with another generator beside it (--cross-check), and report it"
)
FIGURES_CONTRADICT = Symptom(
    "figures that contradict each other",
    Meaning(Bearing.LIMITS, OF_NOTHING, OTHER_GENERATOR, CROSS_CHECK),
    "requests in flight differ by {off:.0%} from rate times latency (Little's law): the generator's "
    "figures cannot all be true",
    shared="requests in flight are not rate times latency (Little's law): the generator's figures cannot all"
    " be true",
    traits=Traits(cause="a generator whose figures contradict each other", of_machine=True),
)
"""``off``: by which share requests in flight differ from rate times latency."""


def littles_law(evidence: Evidence) -> list[Finding]:
    """Return a finding when requests in flight differ from rate times latency by more than a tenth."""
    recording = evidence.trial.recording
    residual = None if recording is None else off_little(recording)
    if residual is None:
        return []
    return [Finding(FIGURES_CONTRADICT, Confidence.CERTAIN, {"off": abs(residual)})]

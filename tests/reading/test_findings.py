"""Findings about subjects over their trials."""

from prony.diagnosis.cpu_time import THROTTLED
from prony.diagnosis.evidence import Confidence, Finding
from prony.diagnosis.started_under_load import RESTARTED
from prony.reading.findings import merged


def restarted(role, times):
    return Finding(RESTARTED, Confidence.CERTAIN, {"restarts": times}, {"role": role}, rule="D22")


def test_trials_are_counted_and_not_findings():
    both = (restarted("frontend-worker", 2), restarted("worker", 5))
    (found,) = merged([("a", both), ("b", ()), ("a", ())])
    assert (found.subject, found.finding.names["role"]) == ("a", "worker")
    assert (found.trials, found.of) == (1, 2)


def test_a_finding_is_as_sure_as_in_more_than_half_of_the_trials():
    levels = (Confidence.CERTAIN, Confidence.POSSIBLE, Confidence.POSSIBLE)
    (found,) = merged([("a", (Finding(THROTTLED, one, rule="D14"),)) for one in levels])
    assert found.finding.confidence is Confidence.POSSIBLE

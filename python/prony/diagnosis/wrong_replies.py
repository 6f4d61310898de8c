"""D31: replies had another status, or another body, than was expected.

An error is often made faster than a page: the figures describe other work. *Source*: oha and others that
count any reply as a success.
"""

from prony.analysis.rates import QUALIFIED_ERROR_RATIO
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Meaning, Sentence, Symptom
from prony.diagnosis.shared import OF_ERRORS, RIGHT_REPLIES
from prony.model.trial import Ok

READ_LOG_FOR_ERRORS = Advice("read its log for errors", "read its log, and ask for such a page by hand")
WRONG_REPLIES = Symptom(
    "wrong replies",
    Meaning(Bearing.ADDS, OF_ERRORS, RIGHT_REPLIES),
    Sentence(
        "{wrong:n reply} of {done} had another status or body than expected, {share:.1%}",
        "replies had another status or body than expected",
    ),
)
"""``wrong`` of ``done`` replies; ``share``."""


_CLASSES = ("bad_status", "failed_validation")
# Single ones may be a server's way to say that it is busy.
_LEAST = 5


def wrong_replies(evidence: Evidence) -> list[Finding]:
    """Return a finding when more than one reply in a thousand was not as expected."""
    recording = evidence.trial.recording
    if recording is None or not isinstance(evidence.trial.outcome, Ok):
        return []
    wrong = sum(recording.account.count(name) for name in _CLASSES)
    done = recording.account.ok + wrong
    if wrong < _LEAST or wrong <= QUALIFIED_ERROR_RATIO * done:
        return []
    return [
        Finding(
            rule="D31",
            kind=WRONG_REPLIES,
            confidence=Confidence.CERTAIN,
            numbers={"wrong": wrong, "done": done, "share": wrong / done},
            advice=READ_LOG_FOR_ERRORS,
            shareable=True,
        )
    ]

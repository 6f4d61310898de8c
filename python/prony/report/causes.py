"""Why trials do not count, in words."""

from prony.analysis.validity import FAULT_WORDS
from prony.model.fault import FaultKind
from prony.model.trial import Failed, Invalid
from prony.reading.causes import Cause
from prony.report.forms import whole_percent
from prony.report.text import Figure, Name, Quote, Text, pointer, text
from prony.units import format_duration


def outcome_words(found: Cause, at: str) -> Text:
    """Return the outcome of trials and its reason. ``at``: where the report's JSON has the cause."""
    match found.outcome:
        case Failed(stage):
            return text("failed at {}: {}", Name(stage), cause_words(found, at))
        case Invalid():
            return text("not valid: {}", cause_words(found, at))
        case _:
            return text("ok")


def cause_words(found: Cause, at: str) -> Text:
    """Return why trials do not count: the reason that all of them share, or the range of their figures."""
    if found.fault is None or found.low is None or found.high is None or not found.differs:
        reason = found.outcome.reason if isinstance(found.outcome, Failed | Invalid) else ""
        return text("{}", Quote(reason, at + pointer("reason")))
    form = format_duration if found.fault is FaultKind.SLEPT else whole_percent
    low, high = Figure(found.low, form, at + pointer("low")), Figure(found.high, form, at + pointer("high"))
    said = text(FAULT_WORDS[found.fault], text("{} to {}", low, high))
    return said if found.also is None else text("{}; {}", said, Quote(found.also, at + pointer("also")))

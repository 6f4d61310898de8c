"""Why trials do not count, in words."""

from collections.abc import Mapping
from types import MappingProxyType

from prony.model import Failed, FaultKind, Invalid
from prony.reading.causes import Cause
from prony.report.forms import whole_percent
from prony.report.text import Figure, Name, Quote, Text, pointer, text
from prony.units import format_duration

__all__ = ["cause_words", "outcome_words"]

# For kinds that have a figure: the range over several trials takes the place of `{}`.
_RANGES: Mapping[FaultKind, str] = MappingProxyType(
    {
        FaultKind.SLEPT: "the machine slept for {} within the window",
        FaultKind.STOLEN_TIME: "the hypervisor gave {} of the CPUs' time to others",
        FaultKind.OTHER_LOAD: "other programs used {} of the CPUs of server and generator",
        FaultKind.LITTLES_LAW: "Little's law is off by {}: the generator's own figures disagree",
    }
)


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
    return text(_RANGES[found.fault], text("{} to {}", low, high))

"""What the experiment claimed, and what this repeat says of it."""

from collections import Counter

from prony.analysis.claims import ClaimResult, ClaimVerdict
from prony.metrics import format_metric
from prony.model import Claim, ClaimKind
from prony.reading.study import Reading
from prony.report.document import Block, Judgement, Judgements, Paragraph, Section, Tone
from prony.report.words import count_words
from prony.units import format_percent

__all__ = ["claim_counts", "claims", "figure_words"]

_TONES = {
    ClaimVerdict.HOLDS: Tone.GOOD,
    ClaimVerdict.DOES_NOT_HOLD: Tone.BAD,
    ClaimVerdict.CANNOT_TELL: Tone.WARNING,
    ClaimVerdict.NOT_TESTABLE: Tone.QUIET,
}
_COUNTED = {
    ClaimVerdict.HOLDS: ("holds", "hold"),
    ClaimVerdict.DOES_NOT_HOLD: ("does not hold", "do not hold"),
    ClaimVerdict.CANNOT_TELL: ("cannot be told", "cannot be told"),
    ClaimVerdict.NOT_TESTABLE: ("is not testable here", "are not testable here"),
}
_VALUES = (ClaimKind.VALUE, ClaimKind.SINGLE_CORE)


def claims(reading: Reading) -> Section | None:
    """Return the claims with their verdicts, the counts first; null for a study that repeats none."""
    if not reading.claims:
        return None
    blocks: tuple[Block, ...] = (
        Paragraph(f"{claim_counts(reading)}."),
        Judgements(tuple(_judgement(claim, result) for claim, result in reading.claims)),
    )
    return Section("What was claimed", blocks)


def claim_counts(reading: Reading) -> str:
    """Return how many claims have which verdict, such as ``3 claims: 2 hold, 1 does not hold``."""
    counts = Counter(result.verdict for _, result in reading.claims)
    parts = [f"{counts[one]} {_COUNTED[one][counts[one] != 1]}" for one in ClaimVerdict if counts[one]]
    return f"{count_words(len(reading.claims), 'claim')}: {', '.join(parts)}"


def _judgement(claim: Claim, result: ClaimResult) -> Judgement:
    found = (result.reason, figure_words(claim, result), _claimed(claim))
    detail = "; ".join(part for part in found if part)
    return Judgement(result.verdict.value, _TONES[result.verdict], claim.text, detail)


def figure_words(claim: Claim, result: ClaimResult) -> str:
    """Return the figure that decides, with its interval; empty where there is none."""
    if result.figure is None:
        return ""
    text = f"measured {_figure(claim, result.figure)}{_unit(claim)}"
    if result.interval is not None:
        low, high = (_figure(claim, bound) for bound in result.interval)
        text += f" (interval {low} to {high})"
    return f"{text}, n = {result.n}" if result.n is not None else text


def _claimed(claim: Claim) -> str:
    """Return the claim's own figures; empty where it is an order."""
    low, high = (None if bound is None else _figure(claim, bound) for bound in (claim.low, claim.high))
    unit = _unit(claim)
    match low, high:
        case None, None:
            return ""
        case None, str():
            return f"claimed at most {high}{unit}"
        case str(), None:
            return f"claimed at least {low}{unit}"
    return f"claimed {low}{unit}" if low == high else f"claimed {low} to {high}{unit}"


def _unit(claim: Claim) -> str:
    if claim.kind is ClaimKind.FAILS:
        return " of the trials"
    return "" if claim.kind in _VALUES else " times"


def _figure(claim: Claim, value: float) -> str:
    if claim.kind in _VALUES:
        return format_metric(claim.metric, value)
    if claim.kind is ClaimKind.FAILS:
        return format_percent(value)
    return f"{value:,.{3 if value < 0.1 else 2 if value < 10 else 1}f}"

"""One setting tried: before and after in blocks that have both, as a value and in words. Pure.

>>> try_verdict(Gain(8, 0.10, 0.08, 0.12))
<TryVerdict.CONFIRMED: 'confirmed'>
>>> try_verdict(Gain(8, 0.02, -0.05, 0.10))
<TryVerdict.OPEN: 'cannot tell'>
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from prony.report.document import Block, Command, Document, Paragraph, Section, Tone
from prony.report.forms import count
from prony.report.text import Figure, Name, Quote, Text, text
from prony.tune.answer import gain_words
from prony.tune.race import Gain
from prony.tune.reading import RatioChange

# A gain of less changes nobody's mind.
_LEAST = 0.05


class TryVerdict(StrEnum):
    """What fresh blocks say of a setting."""

    CONFIRMED = "confirmed"
    """It is better: the whole interval."""
    REFUTED = "not confirmed"
    """It gains less than 5 %: the whole interval."""
    OPEN = "cannot tell"
    """More blocks may decide it, or nothing was compared."""


def try_verdict(gain: Gain | None) -> TryVerdict:
    """Return what the interval of a gain says."""
    if gain is None or gain.low is None or gain.high is None:
        return TryVerdict.OPEN
    if gain.low > 0:
        return TryVerdict.CONFIRMED
    return TryVerdict.REFUTED if gain.high < _LEAST else TryVerdict.OPEN


@dataclass(frozen=True, slots=True)
class TryReading:
    """A setting that was tried."""

    subject: str
    load: str
    """In words."""
    setting: str
    """As `--set` calls it."""
    before: str
    after: str
    verdict: TryVerdict
    metric: str
    """What decides under this load: one of METRICS."""
    change: RatioChange | None
    """After against before, with the 95 % interval; null: nothing was compared."""
    pairs: int
    """How many fresh blocks have both."""
    following: str
    """The command that may decide it; empty: it is decided."""


def try_document(found: TryReading) -> Document:
    """Return it as a report."""
    return Document(
        text("{}: {}", Name(found.subject), Name(found.setting)), (Section("", tuple(_blocks(found))),)
    )


def _blocks(found: TryReading) -> Iterator[Block]:
    tone = {TryVerdict.CONFIRMED: Tone.GOOD, TryVerdict.REFUTED: Tone.WARNING}.get(found.verdict, Tone.QUIET)
    yield Paragraph(_sentence(found), tone)
    if found.following:
        yield Paragraph(text("More blocks may decide it:"))
        yield Command(found.following)


def _sentence(found: TryReading) -> Text:
    verdict = found.verdict.value
    turned = text(
        "{} {} to {}", Name(found.setting), Quote(found.before, "/before"), Quote(found.after, "/after")
    )
    change = gain_words(found.change, found.metric, "/change", Figure(found.pairs, count, "/pairs"))
    return text(
        "{}: {}: {}, under {}.", verdict[:1].upper() + verdict[1:], turned, change, Quote(found.load, "/load")
    )

"""A comparison in words: its effect and its interval."""

from collections.abc import Mapping

from prony.core.metrics import METRICS, Better
from prony.figures.statistics.compare import Comparison, Verdict
from prony.reading.groups import Group
from prony.report.document import Entry, Tone
from prony.report.forms import confidence, count, signed_percent
from prony.report.text import Figure, Name, Part, Text, pointer, text


def effect_words(found: Comparison, at: str) -> Text:
    """Return an effect with its interval and the interval's level. ``at``: where the report's JSON has it."""
    if found.effect is None:
        return text("not compared")
    effect = Figure(found.effect, signed_percent, at + pointer("effect"))
    bounds = bounds_words(found, at)
    if not bounds:
        spans = _range_words(found, at)
        return text("{}, single sessions {}", effect, spans) if spans else text("{}", effect)
    level = Figure(found.level, confidence, at + pointer("level"))
    return text("{}, {} interval {}", effect, level, bounds)


def bounds_words(found: Comparison, at: str) -> Text:
    """Return the ends of an interval; empty where it has none."""
    if found.low is None or found.high is None:
        return Text()
    low = Figure(found.low, signed_percent, at + pointer("low"))
    return text("{} to {}", low, Figure(found.high, signed_percent, at + pointer("high")))


def comparison_entries(
    metric: str, found: Comparison | None, at: str, why: Part | None = None
) -> tuple[Entry, Entry, Entry, Entry]:
    """Return the entries of a comparison in a table: effect, interval (or the range of single sessions,
    called that), verdict in the tone of what it says of the second, and how many blocks. ``why``: there is
    none.
    """
    dash, spread = Entry("—", Tone.QUIET), Text()
    if found is not None:
        spans = _range_words(found, at)
        spread = bounds_words(found, at) or (text("range {}", spans) if spans else spans)
    if found is None or found.effect is None or not spread:
        return dash, dash, Entry.of(why, Tone.QUIET) if why else dash, dash
    effect = text("{}", Figure(found.effect, signed_percent, at + pointer("effect")))
    number = text("{}", Figure(found.blocks, count, at + pointer("blocks")))
    verdict = Entry.of(found.verdict.value, _tone(metric, found.verdict))
    return Entry(effect), Entry(spread), verdict, Entry(number)


def _tone(metric: str, verdict: Verdict) -> Tone:
    if verdict not in (Verdict.HIGHER, Verdict.LOWER):
        return Tone.PLAIN
    better = Verdict.HIGHER if METRICS[metric].better is Better.HIGHER else Verdict.LOWER
    return Tone.GOOD if verdict is better else Tone.BAD


def ratios_to_first(group: Group, at: str) -> Mapping[str, Text]:
    """Return how each subject differs from the first in what decides, with the interval that verdicts use.

    ``at``: where the report's JSON has the group.
    """
    compared = group.answer.comparisons
    return {
        name: _ratio(found, at + pointer("answer", "comparisons", name)) for name, found in compared.items()
    }


def _ratio(found: Comparison, at: str) -> Text:
    if found.effect is None:
        return text("not compared")
    effect = text("{}", Figure(found.effect, signed_percent, at + pointer("effect")))
    bounds = bounds_words(found, at) or _range_words(found, at)
    return text("{} ({})", effect, bounds) if bounds else effect


def _range_words(found: Comparison, at: str) -> Text:
    """Return the range of an effect in single sessions; empty where there is one session."""
    if found.least is None or found.most is None:
        return Text()
    least = Figure(found.least, signed_percent, at + pointer("least"))
    return text("{} to {}", least, Figure(found.most, signed_percent, at + pointer("most")))


def ratio_note(group: Group) -> Text | None:
    """Return what the ratios of a group's main table are; None where there are none."""
    found = group.answer
    if found.metric is None or not found.comparisons:
        return None
    metric = Name(METRICS[found.metric].title)
    if found.by_session and not found.decided:
        words = "to the first: difference in {}, with the range of single sessions: so few have no interval."
        return text(words, metric)
    over = "over the sessions" if found.by_session else "within one session"
    return text(
        f"to the first: difference in {{}} within blocks, with its {{}} interval {over}. The intervals hold "
        "for all pairs together; verdicts follow from them, not from those of single figures.",
        *(metric, Name("95 %")),
    )

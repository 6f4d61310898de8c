"""A comparison in words: its effect and its interval."""

from collections.abc import Mapping

from prony.core.metrics import METRICS, Better
from prony.figures.statistics.compare import Comparison, Verdict
from prony.reading.groups import Group
from prony.report.document import Entry, Tone
from prony.report.forms import confidence, count, signed_percent
from prony.report.text import EMPTY, Figure, Name, Part, Text, framed, pointer, text


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
    return _between(at, low=found.low, high=found.high)


def bounded_words(found: Comparison, at: str) -> Text:
    """Return an effect, with the ends of its interval in brackets where it has one."""
    return _with(found, bounds_words(found, at), at)


def _with(found: Comparison, bounds: Text, at: str) -> Text:
    if found.effect is None:
        return text("not compared")
    effect = Figure(found.effect, signed_percent, at + pointer("effect"))
    return text("{}{}", effect, framed(" (", bounds, ")"))


def _between(at: str, **ends: float | None) -> Text:
    """Return two ends, by their keys; empty where there are none."""
    known = [Figure(end, signed_percent, at + pointer(key)) for key, end in ends.items() if end is not None]
    return text("{} to {}", *known) if len(known) == 2 else EMPTY


def comparison_entries(
    metric: str, found: Comparison | None, at: str, why: Part | None = None
) -> tuple[Entry, Entry, Entry, Entry]:
    """Return the entries of a comparison in a table: effect, interval (or the range of single sessions,
    called that), verdict in the tone of what it says of the second, and how many blocks. ``why``: there is
    none.
    """
    dash, spread = Entry("—", Tone.QUIET), EMPTY
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
    found = {name: (one, at + pointer("answer", "comparisons", name)) for name, one in compared.items()}
    return {
        name: _with(one, bounds_words(one, where) or _range_words(one, where), where)
        for name, (one, where) in found.items()
    }


def _range_words(found: Comparison, at: str) -> Text:
    """Return the range of an effect in single sessions; empty where there is one session."""
    return _between(at, least=found.least, most=found.most)


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

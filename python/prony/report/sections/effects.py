"""A comparison in words: its effect and its interval. Must not know which things are compared."""

from prony.analysis.compare import Comparison
from prony.report.forms import confidence, signed_percent
from prony.report.text import Figure, Text, pointer, text

__all__ = ["bounds_words", "effect_words"]


def effect_words(found: Comparison, at: str) -> Text:
    """Return an effect with its interval and the interval's level. ``at``: where the report's JSON has it."""
    if found.effect is None:
        return text("not compared")
    effect = Figure(found.effect, signed_percent, at + pointer("effect"))
    bounds = bounds_words(found, at)
    if not bounds:
        return text("{}", effect)
    level = Figure(found.level, confidence, at + pointer("level"))
    return text("{}, {} interval {}", effect, level, bounds)


def bounds_words(found: Comparison, at: str) -> Text:
    """Return the ends of an interval; empty where it has none."""
    if found.low is None or found.high is None:
        return Text()
    low = Figure(found.low, signed_percent, at + pointer("low"))
    return text("{} to {}", low, Figure(found.high, signed_percent, at + pointer("high")))

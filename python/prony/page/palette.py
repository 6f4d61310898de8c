"""The colour and the shape of each subject: the same in every chart, and never the colour alone.

>>> marks = palette(("a", "b"))
>>> marks["a"]
Glyph(colour='#0072b2', shape='circle')
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

COLOURS = (
    *("#0072b2", "#d55e00", "#00896b", "#b35c96", "#b07a00", "#2b97d3", "#7a5a3a", "#6e7781"),
    *("#4b3a9b", "#a8324a", "#5f7d00", "#1f5f5b"),
)
"""The first eight are distinct for all common kinds of colour-blindness; all are dark enough on white for
lines.

*Source*: M. Okabe and K. Ito, "Color Universal Design" (2008); yellow and black are replaced, since neither
shows on both a light and a dark ground, and green, purple and orange are darker for contrast.
"""

SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-right", "triangle-left"),
)
INK, QUIET, GRID, PAPER = "#1f2328", "#57606a", "#e4e7eb", "#ffffff"
"""Text, lesser text, grid lines, and the ground: a page replaces these and ``COLOURS`` by its own."""

VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        **{colour: f"var(--c{k})" for k, colour in enumerate(COLOURS)},
        **{INK: "var(--ink)", QUIET: "var(--quiet)", GRID: "var(--grid)", PAPER: "var(--paper)"},
    }
)
"""The variable of a page's style that stands for each colour of a chart."""


@dataclass(frozen=True, slots=True)
class Glyph:
    """How a subject looks."""

    colour: str
    shape: str


def palette(names: Iterable[str]) -> Mapping[str, Glyph]:
    """Return the look of each subject; from the thirteenth on, colours return with other shapes."""
    count = len(COLOURS)
    return {
        name: Glyph(COLOURS[k % count], SHAPES[(k + k // count) % len(SHAPES)])
        for k, name in enumerate(dict.fromkeys(names))
    }

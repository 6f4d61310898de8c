"""A chart in a page, and the key to the subjects' colours and shapes, as HTML.

Charts drawn: as SVG in a page, as SVG and PNG in files. The only place that knows the library for it.
"""

import json
import re

from prony.model.json_codec import Json
from prony.report.page.chart import COLOURS, PAPER, VARIABLES, Chapter, Chart, Glyph, Style, legible
from prony.report.page.markup import prose, safe, words_html

VEGA_LITE = "6.4"
"""The version of Vega-Lite that draws, also in the page."""

_PNG_SCALE = 2.0
# What only a screen reader of Vega's own viewer knows; the figure around it says what the picture shows.
_ROLES = re.compile(r' (?:role|aria-roledescription|aria-hidden|aria-label|pointer-events)="[^"]*"')
_CLASSES = re.compile(r' class="[^"]*"')
_EMPTY = re.compile(r'<path d="M0,0h0v0h0Z"/>|<path d=""/>')
_IDENTIFIER = re.compile(r' id="(\w+)"')
_REFERENCE = re.compile(r'( id="|url\(#)(\w+)')
_UNSEEN = {"type": "point", "opacity": 0}
_LONG = re.compile(r"\d+\.\d{3,}")


def still(spec: Json) -> Json:
    """Return a chart without the invisible marks that only a pointer finds: half of a picture's bytes."""
    if "spec" in spec:
        return {**spec, "spec": still(spec["spec"])}
    return {**spec, "layer": [one for one in spec["layer"] if one["mark"] | _UNSEEN != one["mark"]]}


def svg(spec: Json) -> str:
    """Return a chart as an SVG file, with colours of its own."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(json.dumps(legible(still(spec))), vl_version=VEGA_LITE)
    return _LONG.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), drawn)


def png(spec: Json) -> bytes:
    """Return a chart as a PNG file, at twice the size, on white."""
    import vl_convert

    drawn: bytes = vl_convert.vegalite_to_png(
        json.dumps(legible({**spec, "background": PAPER})), vl_version=VEGA_LITE, scale=_PNG_SCALE
    )
    return drawn


def in_page(spec: Json, key: str) -> str:
    """Return a chart as a part of a page: in the page's colours, its identifiers unique by ``key``."""
    drawn = _EMPTY.sub("", _CLASSES.sub("", _ROLES.sub("", svg(spec))))
    drawn = _renamed(drawn, key)
    drawn = re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', r'<svg aria-hidden="true" \1>', drawn, count=1)
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda found: VARIABLES.get(found[0].lower(), found[0]), drawn)


def _renamed(drawn: str, key: str) -> str:
    """Return a picture with identifiers of its own: the library counts them on through a whole process."""
    names = {name: f"{key}-{k}" for k, name in enumerate(dict.fromkeys(_IDENTIFIER.findall(drawn)))}
    return _REFERENCE.sub(lambda found: f"{found[1]}{names.get(found[2], found[2])}", drawn)


_PATHS = {
    "circle": '<circle cx="6" cy="6" r="4.5"/>',
    "square": '<path d="M2 2h8v8H2z"/>',
    "triangle-up": '<path d="M6 1.5 11 10.5H1z"/>',
    "diamond": '<path d="M6 .5 10.5 6 6 11.5 1.5 6z"/>',
    "triangle-down": '<path d="M6 10.5 1 1.5h10z"/>',
    "cross": '<path d="M4.2 1h3.6v3.2H11v3.6H7.8V11H4.2V7.8H1V4.2h3.2z"/>',
    "triangle-right": '<path d="M10.5 6 1.5 11V1z"/>',
    "triangle-left": '<path d="M1.5 6 10.5 1v10z"/>',
}


def swatch(mark: Glyph) -> str:
    """Return the mark of a subject."""
    colour = COLOURS.index(mark.colour)
    return f'<svg class="mark k{colour}" viewBox="0 0 12 12" aria-hidden="true">{_PATHS[mark.shape]}</svg>'


def key_html(look: Style) -> str:
    """Return the key: every subject with its mark; a script makes each a switch."""
    items = "".join(
        f'<li data-name="{safe(name)}">{swatch(mark)}<span>{safe(name)}</span></li>'
        for name, mark in look.marks.items()
    )
    return f'<nav class="key" aria-label="Subjects"><ul>{items}</ul></nav>'


def figure_html(chart: Chart) -> str:
    """Return a chart under its title; a lazy one as a place that a script fills."""
    drawn = (
        '<p class="quiet">Drawn on demand with JavaScript.</p>'
        if chart.lazy
        else in_page(chart.spec, chart.key)
    )
    lazy = ' data-lazy=""' if chart.lazy else ""
    return (
        f'<figure id="{chart.key}" tabindex="0"{lazy} aria-labelledby="{chart.key}-title" '
        f'aria-describedby="{chart.key}-about">\n'
        f'<figcaption><h3 id="{chart.key}-title">{safe(chart.title)}</h3>'
        f'<p id="{chart.key}-about">{prose(chart.about)}</p></figcaption>\n'
        f'<div class="plot">{drawn}</div>\n</figure>'
    )


def chapter_html(chapter: Chapter) -> str:
    """Return charts under their heading."""
    figures = "\n".join(map(figure_html, chapter.charts))
    heading = f"<h2>{words_html(chapter.heading)}</h2>"
    return (
        f'<section id="{chapter.key}" class="charts">{heading}\n<div class="grid">{figures}</div></section>'
    )

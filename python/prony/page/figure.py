"""A chart in a page, and the key to the subjects' colours and shapes, as HTML."""

from prony.page.chart import Chapter, Chart, Style
from prony.page.markup import prose, safe, words_html
from prony.page.palette import COLOURS, Glyph
from prony.page.render import in_page

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

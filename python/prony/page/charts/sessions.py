"""The charts of a plan that was measured in several sessions."""

from collections.abc import Iterator

from prony.page.chart import Chapter, Style
from prony.page.charts.over import Editions, Step, over_editions, session_ratios
from prony.reading.across import Sessions
from prony.report.forms import day
from prony.report.text import pointer, text
from prony.report.words import workload_words


def session_marks(found: Sessions) -> Iterator[str]:
    """Yield the subjects of sessions, as they come in their plan."""
    for group in found.parts[0].groups:
        yield from (cell.name for cell in group.cells)


def session_chapters(found: Sessions, look: Style, at: str) -> Iterator[Chapter]:
    """Yield for each load its ratios and its metrics over the sessions. ``at``: where the JSON has them."""
    steps = tuple(
        Step(f"session {k + 1}", day(part.started_unix_ns), part.versions.get)
        for k, part in enumerate(found.parts)
    )
    sessions = Editions("session", steps)
    for k, load in enumerate(found.loads):
        same, own = load.same, at + pointer("loads", k)
        charts = [session_ratios(look, sessions, load, same, own)]
        charts += [over_editions(look, sessions, same, metric, own) for metric in same.metrics]
        words = text("{}: over the sessions", workload_words(same.workload, own + pointer("load")))
        yield Chapter(f"sessions-{k}", words, tuple(chart for chart in charts if chart is not None))

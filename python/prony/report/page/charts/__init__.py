"""The charts of a study, in the order in which they are read: this list is the only one."""

from collections.abc import Iterable, Iterator, Sequence

from prony.model.workload import ClosedLoop
from prony.reading.groups import Group, families
from prony.reading.saturation import LEAST_LOADS
from prony.report.page.chart import Chapter, Chart
from prony.report.page.charts.curves import load_curve, over_chapters, setting_charts
from prony.report.page.charts.dots import dots, order, tradeoff
from prony.report.page.charts.percentiles import course_of, heat_map, percentiles, replies, slowest
from prony.report.page.charts.ratios import published, ratios
from prony.report.page.charts.resources import by_role, failures, thread_times, usage
from prony.report.page.scene import Scene
from prony.report.text import Name, Text, Words, text
from prony.report.words import group_title

_CLOSED = ("ok_per_s", "service_ok_mean", "service_ok_p50", "service_ok_p90", "service_ok_p99")
_OPEN = ("response_ok_mean", "response_ok_p50", "response_ok_p90", "response_ok_p99", "ok_per_s")
_COST = ("error_ratio", "cpu_percent", "cpu_ns_per_request", "pss_end", "rss_peak")
_GENERATORS = ("ok_per_s", "generator_cpu_ns_per_request", "generator_rss_mean", "error_ratio")


def chapters(scene: Scene) -> Iterator[Chapter]:
    """Yield the charts of a study: against settings, against the load, of each load that is shown singly, of
    the whole.
    """
    reading = scene.reading
    for k, sweep in enumerate(reading.sweeps):
        words = text("Settings of {}", Name(sweep.name))
        yield _chapter(f"settings-{k}", words, setting_charts(scene, k, sweep))
    gridded = [family for family in families(reading.measured) if len(family) > 1]
    curved: set[tuple[str, int]] = set()
    for k, family in enumerate(gridded):
        yield _chapter(f"against-the-load-{k}", "Against the load", _curves(scene, family, curved))
    in_grid = [group for family in gridded for group in family]
    singly = [group for family in gridded for group in _chosen(family)]
    for group in reading.measured:
        if group in singly or group not in in_grid:
            key, words = _titled(scene, group)
            yield _chapter(key, words, _singly(scene, group, _is_drawn(group, gridded)))
            yield _chapter(f"{key}-seconds", text("{}: second by second", words), _over_time(scene, group))
    yield _chapter("published", "Beside what was published", published(scene, curved))
    if reading.across is not None:
        yield from over_chapters(reading.across, scene.look, "/across")
    yield _chapter("course", "The course of the study", (order(scene),))


def _curves(scene: Scene, family: Sequence[Group], curved: set[tuple[str, int]]) -> Iterator[Chart | None]:
    """Yield the charts of a family; to ``curved`` go the metrics that they show, with the cells."""
    cells = [cell.cell.id for group in family for cell in group.cells]
    published = {
        one.original.metric: None
        for one in scene.reading.originals
        if one.cell.cell.id in cells and not one.original.role
    }
    for metric in dict.fromkeys((*_metrics(family[0]), *published)):
        found = load_curve(scene, family, metric)
        curved |= {(metric, cell) for cell in cells} if found else set()
        yield found
    yield failures(scene, family)


def _chosen(family: Sequence[Group]) -> Sequence[Group]:
    """Return the loads of a grid that are shown singly as well: those that verdicts were planned for; if they
    are many, the lightest and the heaviest.
    """
    primary = [group for group in family if group.primary]
    return primary if len(primary) < LEAST_LOADS else (primary[0], primary[-1])


def _is_drawn(group: Group, gridded: Sequence[Sequence[Group]]) -> bool:
    """Return whether every subject of a group has a line over several loads."""
    family = next((one for one in gridded if group in one), ())
    others = {cell.name for one in family if one is not group for cell in one.cells if cell.total}
    return bool(family) and all(cell.name in others for cell in group.cells if cell.total)


def _titled(scene: Scene, group: Group) -> tuple[str, Text]:
    place = scene.reading.place(group)
    if group.of_generators:
        return f"load-{place}", text("Generators")
    return f"load-{place}", group_title(group, place)


def _metrics(group: Group) -> tuple[str, ...]:
    if group.of_generators:
        return _GENERATORS
    return (_CLOSED if isinstance(group.workload.loop, ClosedLoop) else _OPEN) + _cost(group)


def _cost(group: Group) -> tuple[str, ...]:
    """Return the metrics of cost; resident memory only where the proportional one is not known."""
    known = any(cell.known("pss_end") for cell in group.cells)
    return tuple(name for name in _COST if name != "rss_peak" or not known)


def _singly(scene: Scene, group: Group, gridded: bool) -> Iterator[Chart | None]:
    yield ratios(scene, group)
    yield tradeoff(scene, group)
    yield percentiles(scene, group)
    if not gridded:
        yield from (dots(scene, group, metric) for metric in _metrics(group))
        yield failures(scene, (group,))
    yield thread_times(scene, group)
    yield from (by_role(scene, group, metric) for metric in ("cpu_percent", "pss_end"))


def _over_time(scene: Scene, group: Group) -> Iterator[Chart | None]:
    course = course_of(scene, group)
    yield replies(course)
    yield slowest(course)
    yield heat_map(course)
    yield from (usage(scene, group, metric) for metric in ("cpu_percent", "rss_peak"))


def _chapter(key: str, words: Words, found: Iterable[Chart | None]) -> Chapter:
    return Chapter(key, words, tuple(one for one in found if one is not None))

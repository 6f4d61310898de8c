"""What settings do: the best with its ties, the steps around it, and whether one depends on the other."""

from dataclasses import replace

import pytest

from cells import measured
from golden import build, studies
from golden.studies import with_levels
from prony.archive import open_archive
from prony.core.errors import FailureStage
from prony.core.units import MIB
from prony.figures.statistics.compare import Dependent, Terms, Verdict
from prony.model.plan import Cell
from prony.model.sandbox import SandboxChoice
from prony.model.trial import Failed
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.reading.groups import groups_of
from prony.reading.study import read_archive
from prony.reading.sweeps import sweeps_of
from prony.report.brief import brief_report
from prony.report.formats.markdown import markdown
from prony.report.sections.sweeps import sweep_sections

LOAD = Workload(ClosedLoop(10), DurationStop(build.SECOND))
# What blocks differ by, and noise that is the same for none of two subjects.
BLOCKS = (100, 102, 99, 101, 100, 103)


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    with open_archive(studies.settings_study(tmp_path_factory.mktemp("a") / "a.prony")) as archive:
        return read_archive(archive)


@pytest.fixture(scope="module")
def sweep(reading):
    return reading.sweeps[0]


def swept(*speeds, levels=None, key="workers", sandboxes=None, records=None, **kwargs):
    """The sweep of one setting, whose levels have these speeds; null fails in half of its requests."""
    levels = levels or [2**k for k in range(len(speeds))]
    made = [with_levels("gunicorn+hello", {key: level}) for level in levels]
    boxes = sandboxes or [SandboxChoice()] * len(speeds)
    cells = [
        Cell(k, subject, LOAD, sandbox=box)
        for k, ((subject, _), box) in enumerate(zip(made, boxes, strict=True))
    ]
    plan = build.Plan("s", "", "", "quick", tuple(cells), len(BLOCKS), 1)
    (group,) = groups_of(plan, [])
    noise = [[1 + 0.0002 * ((7 * k + 3 * place) % 5) for place in range(len(BLOCKS))] for k in range(9)]
    found = [
        measured(
            cell,
            lost=0 if speed else 2000,
            ok_per_s=[(speed or 1) * block * much for block, much in zip(BLOCKS, noise[k], strict=True)],
        )
        for k, (cell, speed) in enumerate(zip(cells, speeds, strict=True))
    ]
    group = replace(group, cells=tuple(found))
    known = {one.name: one for _, one in made} if records is None else records
    (sweep,) = sweeps_of([group], known, Terms(**kwargs))
    return sweep


# --- the best ---------------------------------------------------------------------------------------------


def test_the_best_is_the_first_with_all_that_are_not_shown_to_be_worse(sweep):
    settings = {name: [level.shown for level in sweep.levels(name)] for name in (sweep.best, *sweep.ties)}
    assert list(settings.values()) == [["2", "4"], ["2", "1"], ["4", "1"]]
    assert (sweep.name, sweep.decided, sweep.blocks) == ("gunicorn+hello", True, 6)


def test_of_ties_one_takes_the_least(sweep):
    assert [level.shown for level in sweep.levels(sweep.least)] == ["2", "1"]


def test_a_level_is_shown_as_the_number_that_it_is_on_this_machine(sweep):
    workers, threads = sweep.factors
    assert [level.value for level in workers.levels] == [1, "2*{cpus}", 4]
    assert [level.number for level in workers.levels] == [1, 2, 4]
    assert (workers.title, threads.title) == ("workers", "threads")


def test_the_steps_around_the_best_are_compared_with_it():
    found = swept(1.0, 2.0, 2.01, 1.9)
    assert [(one.level, one.comparison.verdict) for one in found.neighbours] == [
        (1, Verdict.EQUIVALENT),
        (3, Verdict.LOWER),
    ]
    assert found.at_edge == ()
    assert found.steps[1].effect == pytest.approx(1.0, abs=0.01)
    assert found.steps[3].effect == pytest.approx(-0.05, abs=0.01)


def test_where_the_largest_level_is_best_more_may_help():
    assert swept(1.0, 2.0, 4.0).at_edge == (0,)
    # A smaller one is as good: it is not the edge that limits.
    assert swept(1.0, 2.0, 2.0).at_edge == ()


def test_limits_are_numbers_of_the_sandbox():
    boxes = [SandboxChoice(memory_bytes=many * MIB) for many in (1024, 64)]
    found = swept(2.0, 1.0, levels=["1G", "64M"], key="sandbox.memory", sandboxes=boxes)
    assert [(level.shown, level.number) for level in found.factors[0].levels] == [
        ("64M", 64 * MIB),
        ("1G", 1024 * MIB),
    ]
    assert found.factors[0].title == "memory"


def test_words_have_no_order_and_no_least():
    found = swept(1.0, 2.0, 2.0, levels=["sync", "gevent", "gthread"], key="worker_class")
    assert [level.shown for level in found.factors[0].levels] == ["sync", "gevent", "gthread"]
    assert (found.least, found.at_edge) == (None, ())
    assert {one.level for one in found.neighbours} == {0, 1, 2} - {found.point(found.best).at[0]}


def test_a_setting_that_fails_requests_is_no_best_however_fast_it_is():
    found = swept(1.0, None, 0.5)
    assert found.best == "gunicorn[workers=1]+hello"
    assert found.ties == ()
    assert len(found.points) == 3
    assert found.unranked == ("gunicorn[workers=2]+hello",)


def test_where_none_qualifies_there_is_no_best():
    found = swept(None, None)
    assert (found.best, found.metric, found.crossed) == (None, None, ())


# --- two settings -----------------------------------------------------------------------------------------


def test_the_best_of_one_setting_depends_on_the_other_where_that_is_shown(sweep):
    (found,) = sweep.crossed
    assert found.verdict is Dependent.YES
    assert found.best == ((1,), (0, 1), (0,))
    assert found.everywhere == ()
    assert found.steps[0, 1].effect == pytest.approx(500 / 300 - 1, abs=0.01)
    assert found.found[2, 1].effect == pytest.approx((560 / 598) / (500 / 300) - 1, abs=0.01)


def test_a_server_that_failed_trials_shows_no_dependence_by_the_others(reading, sweep):
    (group, *others), crossed = reading.groups, sweep.crossed[0]
    dead = replace(group.cells[0].counted[0], outcome=Failed(FailureStage.LOAD, "it died"))
    cells = tuple(replace(cell, others=(*cell.others, dead)) for cell in group.cells)
    found = sweeps_of([replace(group, cells=cells), *others], reading.subjects, Terms())
    (changed,) = found[0].crossed
    assert Verdict.SURVIVORS in {one.verdict for one in changed.found.values()}
    assert (crossed.verdict, changed.verdict) == (Dependent.YES, Dependent.NOT_SHOWN)


def test_the_steps_around_the_best_are_those_of_each_setting(sweep):
    best = sweep.point(sweep.best)
    assert {(one.factor, one.level) for one in sweep.neighbours} == {(0, 0), (0, 2), (1, 0)}
    assert all(
        sum(a != b for a, b in zip(best.at, sweep.point(one.name).at, strict=True)) == 1
        for one in sweep.neighbours
    )


def test_numbers_are_in_order_also_where_nothing_was_resolved():
    found = swept(1.0, 2.0, levels=[16, 2], records={})
    assert [level.number for level in found.factors[0].levels] == [2, 16]


def test_the_report_says_so_in_words(reading):
    said = [
        f"{item.verdict} {item.sentence}".strip()
        for section in brief_report(reading).sections
        for block in section.blocks
        for item in getattr(block, "items", ())
        if hasattr(item, "sentence")
    ]
    assert said[:3] == [
        "settings gunicorn+hello: workers=2 threads=4 shares the first place with workers=2 threads=1, "
        "workers=4 threads=1; workers=2 threads=1 takes the least of them",
        "more does not help: workers=4 is worse, -6.7 % (-7.6 % to -5.8 %)",
        "which threads is best depends on workers: workers=1: 4; workers=2: 1 or 4; workers=4: 1",
    ]


def test_a_setting_that_is_not_ranked_is_named_beside_the_best(reading):
    (swept,) = reading.sweeps
    alone = replace(swept, ties=(), unranked=(swept.ties[0],))
    page = markdown(brief_report(replace(reading, sweeps=(alone,))))
    assert "workers=2 threads=4 is best; not ranked: workers=2 threads=1" in page


def test_the_tables_have_a_row_for_each_level(reading):
    (section,) = sweep_sections(reading)
    tables = [block for block in section.blocks if hasattr(block, "rows")]
    assert [[str(row[0].text) for row in table.rows] for table in tables] == [["1", "2", "4"]] * 5
    assert str(tables[-1].rows[2][-1].text) == "-43.7 % (-44.3 % to -43.0 %)"


def test_a_server_beside_it_is_in_no_sweep(sweep):
    assert not any("waitress" in point.name for point in sweep.points)

"""How long a request takes alone: what is sent for it, and when there is no figure."""

from dataclasses import replace

import pytest

from diagnosis.test_rules import CELL
from golden import build
from prony.core.errors import EngineError
from prony.model.address import Address
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice
from prony.study.after_window import alone
from recordings import with_parts

MS, SECOND = 1_000_000, build.SECOND
LOAD = build.Workload(build.OpenLoop(100.0), DurationStop(2 * SECOND), warmup_ns=SECOND)
WHERE = (Address("127.0.0.1", 8000), None)


class Engine:
    """Answers with the replies, in ms, that it is given."""

    def __init__(self, *replies_ms, failed=0):
        self._replies, self._failed, self.loads = replies_ms, failed, []

    def run(self, workload, address, seat, on_event):
        self.loads.append(workload)
        if not self._replies:
            raise EngineError("it broke")
        found = build.recording(LOAD, [one * MS + 50_000 for one in self._replies])
        return with_parts(found, completed={"ok": len(self._replies), "failed": self._failed})


@pytest.fixture
def cell():
    return replace(CELL, workload=LOAD)


def loaded(ms=20, **window):
    found = build.recording(LOAD, [ms * MS + 50_000] * 200)
    return with_parts(found, window=window) if window else found


def test_one_connection_sends_the_same_requests_one_after_the_other(cell):
    engine = Engine(10, 12, 100)
    found = alone(engine, cell, loaded(40), WHERE)
    assert found["alone.requests"] == 3
    assert found["alone.service_ns"] == pytest.approx(12 * MS, rel=1e-3)
    assert found["alone.mean_ns"] == pytest.approx(122 / 3 * MS, rel=1e-3)
    sent = engine.loads[0]
    assert (sent.loop, sent.warmup_ns, sent.request) == (ClosedLoop(1), 0, LOAD.request)
    assert sent.stop.duration_ns == pytest.approx(400 * MS, rel=1e-3)


@pytest.mark.parametrize(("median_ms", "length_ms"), [(1, 300), (900, 2000)])
def test_it_takes_a_part_of_a_second_or_two(cell, median_ms, length_ms):
    engine = Engine(1, 1, 1)
    alone(engine, cell, loaded(median_ms), WHERE)
    assert engine.loads[0].stop == DurationStop(length_ms * MS)


def test_a_page_of_which_three_do_not_fit_into_two_seconds_gets_five(cell):
    engine = Engine(1500)
    alone(engine, cell, loaded(900), WHERE)
    assert [load.stop for load in engine.loads] == [DurationStop(2 * SECOND), DurationStop(5 * SECOND)]


@pytest.mark.parametrize("engine", [Engine(), Engine(10, 12), Engine(10, 12, 14, failed=1)])
def test_what_fails_or_answers_too_seldom_has_no_figure(cell, engine):
    assert alone(engine, cell, loaded(), WHERE) == {}
    assert engine.loads


@pytest.mark.parametrize(
    ("choice", "recording"),
    [
        (EngineChoice("wrk"), loaded()),
        (EngineChoice("local:2"), loaded()),
        (EngineChoice("fleet"), loaded()),
        (EngineChoice(), loaded(interrupted=True)),
        (EngineChoice(), loaded(close_ns=1000 * SECOND + 1999 * MS)),
    ],
    ids=["another generator", "two", "elsewhere", "interrupted", "a short window"],
)
def test_nobody_asks_after_a_short_window_or_through_other_generators(cell, choice, recording):
    engine = Engine(1, 1, 1)
    assert alone(engine, replace(cell, engine=choice), recording, WHERE) == {}
    assert engine.loads == []


def test_requests_far_apart_follow_where_one_at_a_time_is_worked_on(cell):
    at_a_time = loaded()
    per_s = at_a_time.completed.ok * SECOND / at_a_time.window.length_ns
    one = [round(1000 / per_s)] * 3
    assert "alone.spaced_ns" not in alone(Engine(*[3 * each for each in one]), cell, at_a_time, WHERE)
    engine = Engine(*one)
    assert alone(engine, cell, at_a_time, WHERE)["alone.spaced_ns"] == pytest.approx(one[0] * MS, rel=0.02)
    first, apart = engine.loads
    assert first.loop == ClosedLoop(1)
    assert apart.loop == build.OpenLoop(per_s / 4, connections=1)
    assert (apart.stop.duration_ns, apart.warmup_ns) == (pytest.approx(40 / per_s * SECOND, rel=0.01), 0)

"""The knee is the least load that gives nearly the highest throughput."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build
from prony.figures.missing import Missing
from prony.figures.summary import figures, summarise_cell
from prony.model.plan import Cell
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.reading.saturation import Point, points, saturation


def curve(*throughputs, half=0.0):
    return [Point(10.0**k, value, value - half, value + half) for k, value in enumerate(throughputs)]


def test_the_knee_is_the_least_load_with_95_per_cent_of_the_highest():
    found = saturation(curve(100, 500, 949, 950, 1000, 700))
    assert (found.knee.throughput, found.highest.throughput, found.saturated) == (950, 1000, True)


def test_a_curve_that_still_rises_has_not_saturated():
    assert saturation(curve(100, 200, 400)).saturated is False


def test_intervals_tell_which_smaller_load_may_be_the_knee():
    found = saturation(curve(100, 500, 930, 960, 1000, half=20))
    assert (found.knee.throughput, found.earliest.throughput) == (960, 930)
    sure = saturation(curve(100, 500, 700, 960, 1000, half=20))
    assert sure.earliest == sure.knee


def test_without_intervals_no_smaller_load_may_be_the_knee():
    found = saturation([Point(1, 500), Point(2, 940), Point(3, 980), Point(4, 1000)])
    assert found.knee == found.earliest == Point(3, 980)


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=12), st.floats(0, 10))
def test_the_earliest_is_never_after_the_knee_nor_the_knee_after_the_highest(values, half):
    found = saturation(curve(*values, half=half))
    assert found.earliest.load <= found.knee.load <= found.highest.load
    assert found.knee.throughput >= 0.95 * max(values)


def test_two_loads_have_no_knee():
    assert saturation(curve(1, 2)) == Missing("2 loads with figures; a knee needs 3")


def cell(connections, count, errors=None):
    of = Cell(
        connections,
        build.subject("s+hello"),
        Workload(ClosedLoop(connections), DurationStop(2 * build.SECOND)),
    )
    made = [figures(build.trial(of, block, 0, [1_000_000] * count, errors=errors)) for block in range(2)]
    return summarise_cell(of, made)


def test_a_curve_has_the_loads_that_qualify_in_their_order():
    cells = [cell(100, 2000), cell(10, 1000), cell(1000, 3000, {"reset": 900})]
    found = points(cells, "service_ok_p50")
    assert [point.load for point in found] == [10, 100]
    assert [point.throughput for point in found] == pytest.approx([500, 1000])
    assert found[0].latency_ns is not None

"""Clocks of other machines: what a probe says of them always holds, whatever the network does."""

from hypothesis import given
from hypothesis import strategies as st

from prony.core.units import MILLISECOND_NS, SECOND_NS
from prony.engine.fleet.clocks import Offset, Probe, drift_of, offset_at

ppm = st.integers(-50, 50)
offsets = st.integers(-(10**15), 10**15)
# Each way takes as long as it likes.
ways = st.tuples(
    st.integers(0, SECOND_NS), st.integers(0, 20 * MILLISECOND_NS), st.integers(0, 20 * MILLISECOND_NS)
)


def remote(at_ns, offset_ns, drift_ppm):
    """What the other clock shows then, rounded down."""
    return at_ns + offset_ns + at_ns * drift_ppm // 10**6


def probes(waits, offset_ns, drift_ppm):
    found, now_ns = [], 10**12
    for wait_ns, there_ns, back_ns in waits:
        sent_ns = now_ns + wait_ns
        read_ns = sent_ns + there_ns
        now_ns = read_ns + back_ns
        found.append(Probe(sent_ns, now_ns, remote(read_ns, offset_ns, drift_ppm)))
    return found


@given(st.lists(ways, min_size=1, max_size=30), offsets, ppm, st.integers(-60, 60))
def test_the_planted_offset_is_within_the_bound_before_during_and_after(waits, offset_ns, drift_ppm, at_s):
    found = probes(waits, offset_ns, drift_ppm)
    at_ns = 10**12 + at_s * SECOND_NS
    said = offset_at(found, at_ns)
    assert said is not None
    assert abs(said.ns - (remote(at_ns, offset_ns, drift_ppm) - at_ns)) <= said.bound_ns


@given(st.lists(ways, min_size=1, max_size=30), offsets, ppm, st.integers(0, 60 * SECOND_NS))
def test_the_bound_is_half_the_round_trip_and_the_drift_since(waits, offset_ns, drift_ppm, later_ns):
    found = probes(waits, offset_ns, drift_ppm)
    at_ns = found[-1].received_ns + later_ns
    said = offset_at(found, at_ns)
    of_each = [one.round_trip_ns / 2 + 500e-6 * (at_ns - one.sent_ns) + 3 for one in found]
    assert said.bound_ns <= min(of_each)


@given(st.lists(ways, min_size=2, max_size=30), offsets, ppm)
def test_the_planted_drift_is_within_what_is_said_of_it(waits, offset_ns, drift_ppm):
    said = drift_of(probes(waits, offset_ns, drift_ppm))
    if said is not None:
        # Of the other clock's seconds, which are longer or shorter by as much.
        assert said.low_ppm - 0.01 <= drift_ppm <= said.high_ppm + 0.01


def test_a_minute_of_probes_knows_the_drift_to_a_few_parts_in_a_million():
    found = probes([(SECOND_NS, 50_000, 150_000)] * 60, 5 * SECOND_NS, 50)
    said = drift_of(found)
    assert 44 < said.low_ppm <= 50 <= said.high_ppm < 56


def test_of_two_probes_the_quicker_one_decides_and_both_together_bound_closer_still():
    quick, slow = Probe(0, 100, 1_050), Probe(0, 1_000, 2_000)
    assert offset_at([quick], 50) == Offset(1_000, 52)
    assert offset_at([quick, slow], 50).bound_ns < 52


def test_without_a_probe_or_after_a_jump_nothing_is_known():
    assert offset_at([], 0) is None
    assert offset_at([Probe(0, 100, 50), Probe(200, 300, 10**9)], 300) is None
    assert drift_of([]) is None

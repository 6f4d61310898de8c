"""What `bench/slices` says of short and long windows."""

import math
from random import Random
from types import SimpleNamespace

import pytest

from benches import bench

SLICES = bench("slices")


def ratio_of(mean, half):
    return math.log(mean), half


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([ratio_of(1.01, 0.02), ratio_of(0.98, 0.01)], "green: "),
        ([ratio_of(1.01, 0.02), ratio_of(0.93, 0.01)], "red: "),
        # An interval of 0.04 must become one of 0.02: four times as many blocks.
        ([ratio_of(1.01, 0.02), ratio_of(1.0, math.log1p(0.1))], "open: about 12 stretches more"),
        ([], "open: "),
    ],
)
def test_the_table_is_green_when_all_intervals_lie_within_and_red_when_one_lies_outside(found, said):
    assert SLICES.verdict(found, 0.05, 4).startswith(said)


def test_a_ratio_has_its_interval_over_blocks():
    mean, half = SLICES.ratio([0.01, 0.03, 0.02])
    assert (mean, half) == (pytest.approx(0.02), pytest.approx(4.3027 * 0.01 / 3**0.5, rel=1e-3))
    assert SLICES.ratio([0.01]) is None
    assert SLICES.cell((math.log(1.1), 0.01), 0.05).strip() == "1.100 (1.089-1.111)x"
    assert SLICES.cell((0.0, 0.06), 0.05).strip().endswith("?")


def test_of_noise_without_memory_all_lengths_say_the_same(capsys):
    random = Random(1)
    done_ns = [round(random.uniform(0, 60) * 1e9) for _ in range(60_000)]
    SLICES.lengths(done_ns)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[0] for row in rows] == ["0.1", "0.2", "0.5", "1", "2", "3", "5", "10"]
    assert [int(row[2]) for row in rows[:3]] == [299, 149, 59]
    # Of n requests in a window the logarithm scatters by 1 / sqrt(n), that of a pair by sqrt(2) as much.
    assert float(rows[0][3]) == pytest.approx(14.1, rel=0.15)
    assert [float(row[4]) for row in rows[:4]] == pytest.approx([1.6] * 4, rel=0.35)


def window(number, length_s, pace, cpu_ns=100.0, counts=True):
    ok = round(pace * length_s)
    return SimpleNamespace(
        round=number,
        open_ns=0,
        close_ns=round(length_s * 1e9),
        ok=ok,
        answered=ok,
        cpu_ns=round(cpu_ns * ok),
        counts=counts,
    )


def group(first, short_pace, long_pace, **more):
    """Five rounds, the one in the middle long."""
    lengths = [0.5, 0.5, 3, 0.5, 0.5]
    paces = [short_pace if length < 1 else long_pace for length in lengths]
    return [
        window(first + k, length, pace, **more)
        for k, (length, pace) in enumerate(zip(lengths, paces, strict=True))
    ]


def test_a_long_window_is_compared_with_the_short_ones_around_it():
    trial = SimpleNamespace(slices=[*group(0, 1000, 1000), *group(5, 1800, 2000)])
    found = SLICES.logs({("1.prony", 0): trial}, "ok_per_s")
    assert found == [pytest.approx(0), pytest.approx(math.log(0.9))]
    assert SLICES.logs({("1.prony", 0): trial}, "cpu_ns_per_request") == [pytest.approx(0)] * 2
    assert [one.round for one in SLICES.shorts(trial)] == [0, 1, 3, 4, 5, 6, 8, 9]


def test_a_group_of_rounds_that_lacks_a_window_is_left_out():
    lacking = group(0, 1000, 500)
    lacking[2] = window(2, 3, 500, counts=False)
    trial = SimpleNamespace(slices=[*lacking, *group(5, 1000, 1000)])
    assert SLICES.logs({("1.prony", 0): trial}, "ok_per_s") == [pytest.approx(0)]

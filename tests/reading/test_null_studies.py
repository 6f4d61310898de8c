"""A reading, whole, of studies of equal subjects: what it chooses from the data it chooses here too, and what
it calls different is not.

Three standard errors of so few studies separate right from wrong; `bench/verdicts whole` has more of them.
"""

import numpy as np
import pytest

from null_studies import NullStudy, false_verdicts, rates, reading_of
from prony.figures.claim_parts import ClaimVerdict
from prony.figures.statistics import all_pairs, compare

STUDIES = 30
MOST = 0.05 + 3 * (0.05 * 0.95 / STUDIES) ** 0.5

# What has a level over all pairs, in an open loop.
FOUND = ("leader", "pairs", "latency", "CPU/request", "memory")

CLOSED = NullStudy("closed", 4, 5)
OPEN = NullStudy("open", 8, 5)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(CLOSED, id="two closed loops"),
        pytest.param(OPEN, id="open loop"),
        # That shape of noise is held in CI where pairs are judged (tests/figures/test_all_pairs.py).
        pytest.param(
            NullStudy("open", 8, 5, "half x3"),
            id="half of them three times as noisy",
            marks=pytest.mark.slow,
        ),
        pytest.param(NullStudy("closed", 3, 10, frail=True), id="most lose requests, some fail"),
    ],
)
def test_of_equal_subjects_a_reading_says_little_that_is_not_so(kind):
    found = rates(kind, STUDIES)
    assert {family: share for family, share in found.items() if share > MOST} == {}


def test_without_the_level_of_all_pairs_it_would_say_much(monkeypatch):
    """The test of the test: each pair at a level of its own, as if noise were known to be normal."""
    monkeypatch.setattr(compare, "pair_level", lambda level, subjects, freedom: level)
    monkeypatch.setattr(all_pairs, "widenings", lambda rows: 1.0)
    found = rates(OPEN, STUDIES)
    assert found["pairs", 0] > MOST
    assert sum(found.get((family, 0), 0.0) for family in FOUND) / len(FOUND) > MOST


def test_who_is_best_is_named_all_the_same():
    rng, kind = np.random.default_rng(1), NullStudy("open", 4, 7, effect=2.0)
    readings = [reading_of(kind, rng) for _ in range(8)]
    assert sum(one.groups[0].answer.leader == "s0+hello" for one in readings) >= 7
    assert sum(("leader", 0) in false_verdicts(one) for one in readings) >= 7
    quickest = [
        result.verdict for one in readings for claim, result in one.claims if claim.name == "quickest"
    ]
    assert quickest.count(ClaimVerdict.HOLDS) >= 6

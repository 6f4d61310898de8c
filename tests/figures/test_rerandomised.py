"""Names drawn again within blocks: on these data, equals are called different at most 5 times in 100."""

from statistics import fmean

import numpy as np
import pytest
from scipy import stats

import simulated
from prony.figures.noise_floor import Judged, as_equals, rerandomised
from prony.figures.statistics.compare import Terms

TERMS = Terms(margin=0.001)


def equals(shape, blocks, names, seed=5):
    """One study of equal subjects with a noise of 10 %: the margin does not matter."""
    (found,) = simulated.studies(np.random.default_rng(seed), shape, 1, blocks, names)
    return simulated.logs_of(0.1 * found)


@pytest.mark.parametrize(("shape", "blocks", "names"), [("normal", 10, 4), ("bad runs", 5, 8), ("t3", 20, 3)])
def test_equals_are_called_different_in_at_most_5_of_100_studies(shape, blocks, names):
    found = rerandomised(equals(shape, blocks, names), TERMS, studies=600)
    assert (found.names, found.blocks, found.studies) == (names, blocks, 600)
    assert found.holds
    assert found.coverage >= 1 - found.most
    assert found.too_small <= found.chance


def best_mean(logs, _):
    """Names the best mean always."""
    means = {name: fmean(values.values()) for name, values in logs.items()}
    return Judged(len(set(means.values())) > 1, True, 0.0)


def leader_as_if_fixed(logs, terms):
    """Compares the best mean with each of the others by a t test, as if it had been named before."""
    leader, *others = sorted(logs, key=lambda name: -fmean(logs[name].values()))
    differences = np.array(
        [[logs[leader][block] - logs[name][block] for name in others] for block in logs[leader]]
    )
    least = stats.ttest_1samp(differences, 0.0).pvalue.min()
    called = bool(least <= terms.level / len(others))
    return Judged(called, called, float(least))


@pytest.mark.parametrize(("procedure", "least"), [(best_mean, 0.99), (leader_as_if_fixed, 0.08)])
def test_a_procedure_that_forgets_how_its_leader_was_chosen_is_found_out(procedure, least):
    found = rerandomised(equals("normal", 10, 8), TERMS, procedure, studies=1000)
    assert found.rate >= least
    assert not found.holds


def test_p_values_that_are_too_small_are_found_out():
    found = rerandomised(equals("normal", 10, 4), TERMS, leader_as_if_fixed, studies=500)
    assert found.too_small > found.chance


def test_names_are_drawn_again_within_blocks_only():
    logs = {name: {block: 100.0 * block + k for block in range(6)} for k, name in enumerate("ABC")}
    seen = []

    def look(study, _):
        seen.append(study)
        return Judged(False, False, 1.0)

    rerandomised(logs, TERMS, look, studies=50)
    for study in seen:
        for block in range(6):
            assert sorted(study[name][block] for name in "ABC") == [100.0 * block + k for k in range(3)]
    assert len({str(study) for study in seen}) == 50


def test_blocks_that_lack_a_name_are_left_out():
    logs = equals("normal", 7, 3)
    del logs["s1"][3]
    assert rerandomised(logs, TERMS, studies=10).blocks == 6


@pytest.mark.parametrize(("blocks", "names"), [(4, 3), (10, 1)])
def test_too_few_blocks_or_names_test_nothing(blocks, names):
    assert rerandomised(equals("normal", blocks, names), TERMS) is None


def test_subjects_made_equal_keep_their_noise_and_lose_their_effect():
    logs = {"A": {0: 1.0, 1: 3.0, 2: 9.0}, "B": {0: 7.0, 1: 7.0}}
    found = as_equals(logs)
    assert found["B"] == {0: 0.0, 1: 0.0}
    assert found["A"] == pytest.approx({0: -(2**0.5), 1: 2**0.5})

"""Placements that differ in nothing but the numbers of their CPUs."""

from collections import Counter
from random import Random

import pytest

from prony.machine.cpus import Cpu
from prony.model.sandbox import Placement
from prony.sandbox.placement import equivalent, place

FOUR = tuple(Cpu(number, number, "a") for number in range(4))
# Two threads a core, numbered as usual: the second threads after all first ones.
THREADS = tuple(Cpu(number, number % 4, "a") for number in range(8))
BIG_AND_SMALL = tuple(Cpu(number, number, "big" if number < 4 else "small") for number in range(8))


def drawn(placement, cpus, times=600):
    return [equivalent(placement, cpus, Random(seed)) for seed in range(times)]


def test_every_choice_of_cores_is_about_as_likely():
    found = Counter(one.server_cpus for one in drawn(place(FOUR), FOUR))
    # Six choices, binomial with p = 1/6: 100 +- 9; five of these is beyond chance.
    assert len(found) == 6
    assert all(abs(count - 100) < 46 for count in found.values())


@pytest.mark.parametrize("cpus", [FOUR, THREADS, BIG_AND_SMALL])
def test_each_side_keeps_its_number_of_cpus_and_they_stay_apart(cpus):
    planned = place(cpus)
    for one in drawn(planned, cpus, 100):
        assert len(one.server_cpus) == len(planned.server_cpus)
        assert len(one.generator_cpus) == len(planned.generator_cpus)
        assert not set(one.server_cpus) & set(one.generator_cpus)


def test_hardware_threads_of_a_core_stay_together():
    for one in drawn(place(THREADS), THREADS, 100):
        assert {cpu % 4 for cpu in one.server_cpus} & {cpu % 4 for cpu in one.generator_cpus} == set()


def test_cores_of_another_kind_are_not_exchanged():
    planned = Placement((0, 1, 4), (2, 5, 6))
    for one in drawn(planned, BIG_AND_SMALL, 100):
        assert [cpu < 4 for cpu in one.server_cpus] == [True, True, False]
        assert [cpu < 4 for cpu in one.generator_cpus] == [True, False, False]


@pytest.mark.parametrize(
    "cpus", [(Cpu(0, 0), Cpu(1, 1)), (Cpu(0, 0), Cpu(1, 0)), tuple(Cpu(n, n % 2) for n in range(4))]
)
def test_with_two_cores_or_fewer_nothing_is_drawn(cpus):
    planned = place(cpus)
    assert {one.server_cpus for one in drawn(planned, cpus, 50)} == {planned.server_cpus}


def test_what_is_shared_is_not_drawn():
    planned = place(FOUR, share=True)
    assert equivalent(planned, FOUR, Random(1)) == planned


def test_the_same_seed_draws_the_same():
    assert drawn(place(FOUR), FOUR, 50) == drawn(place(FOUR), FOUR, 50)

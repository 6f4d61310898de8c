"""What makes two machines comparable: the facts that matter, and nothing else."""

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.figures.drift import WHAT_MATTERS, Difference, comparable, machine_key
from prony.model.facts import Fingerprint
from prony.model.json_codec import decode, encode

FACTS = {
    "cpu": {"model": "AMD EPYC 7763", "governor": "performance", "available": 8, "frequency_khz": 3_500_000},
    "kernel": {"release": "6.1.0-18", "command_line": "quiet"},
    "memory": {"limit_bytes": 8 << 30, "total_bytes": 64 << 30},
}
MACHINE = Fingerprint(FACTS)


def with_fact(path, value):
    changed = deepcopy(FACTS)
    changed[path[0]][path[1]] = value
    return Fingerprint(changed)


def test_a_machine_is_comparable_with_itself():
    assert comparable(MACHINE, deepcopy(MACHINE)) == ()


@pytest.mark.parametrize(("name", "path"), WHAT_MATTERS.items())
def test_each_fact_that_matters_is_named_with_both_values(name, path):
    other = with_fact(path, "something else")
    here = str(FACTS[path[0]][path[1]])
    assert comparable(MACHINE, other) == (Difference(name, here, "something else"),)
    assert comparable(other, MACHINE) == (Difference(name, "something else", here),)
    assert machine_key(MACHINE) != machine_key(other)


def test_what_does_not_matter_may_differ():
    facts = deepcopy(FACTS)
    facts["cpu"]["frequency_khz"], facts["kernel"]["command_line"] = 800_000, "splash"
    facts["memory"]["total_bytes"] = 1
    other = Fingerprint(facts)
    assert comparable(MACHINE, other) == ()
    assert machine_key(MACHINE) == machine_key(other)


def test_what_neither_machine_tells_is_no_difference_whatever_the_reason():
    one = with_fact(("cpu", "governor"), {"missing": "no cpufreq"})
    other = with_fact(("cpu", "governor"), {"missing": "cannot read"})
    assert comparable(one, other) == ()
    assert machine_key(one) == machine_key(other)


def test_what_only_one_machine_tells_is_a_difference_with_the_reason():
    silent = with_fact(("cpu", "governor"), {"missing": "no cpufreq"})
    assert comparable(MACHINE, silent) == (
        Difference("CPU governor", "performance", "not known: no cpufreq"),
    )


def test_no_limit_of_memory_is_a_value_of_its_own():
    unlimited = with_fact(("memory", "limit_bytes"), None)
    assert comparable(MACHINE, unlimited) == (Difference("memory limit", str(8 << 30), "none"),)
    assert comparable(unlimited, with_fact(("memory", "limit_bytes"), {"missing": "no controller"})) != ()


def test_governors_that_differ_between_cpus_are_compared_one_by_one():
    mixed = with_fact(("cpu", "governor"), {"0": "performance", "1": "powersave"})
    assert comparable(mixed, deepcopy(mixed)) == ()
    assert comparable(MACHINE, mixed) == (
        Difference("CPU governor", "performance", "0: performance, 1: powersave"),
    )


facts = st.one_of(
    st.none(), st.integers(), st.text(max_size=5), st.fixed_dictionaries({"missing": st.text()})
)
machines = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.dictionaries(st.sampled_from(["model", "governor", "available"]), facts),
        "kernel": st.dictionaries(st.just("release"), facts),
        "memory": st.one_of(st.none(), st.dictionaries(st.just("limit_bytes"), facts)),
    },
).map(Fingerprint)


@given(machines, machines)
def test_comparable_is_symmetric_agrees_with_the_key_and_survives_json(a, b):
    there, back = comparable(a, b), comparable(b, a)
    assert [Difference(one.name, one.b, one.a) for one in there] == list(back)
    assert comparable(decode(Fingerprint, json.loads(json.dumps(encode(a))), "fingerprint"), b) == there
    assert (machine_key(a) == machine_key(b)) == (there == ())


def test_the_key_of_a_machine_stays_so_that_what_was_kept_under_it_is_found():
    silent = with_fact(("cpu", "governor"), {"missing": "no cpufreq"})
    assert (machine_key(MACHINE), machine_key(silent)) == ("bdcb0e754e12", "ffca5b1ac42e")

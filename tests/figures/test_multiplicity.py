"""Levels of many tests: Holm and Benjamini-Hochberg reject what their definitions say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from prony.figures.statistics.compare import holm, screening

P_VALUES = st.lists(st.floats(1e-6, 1), min_size=1, max_size=12).map(lambda ps: dict(enumerate(ps)))


def holm_adjusted(p_values):
    """Holm's adjusted p-values, straight from their definition."""
    ranked, found, highest = sorted(p_values, key=p_values.get), {}, 0.0
    for rank, key in enumerate(ranked):
        highest = max(highest, min(1.0, (len(ranked) - rank) * p_values[key]))
        found[key] = highest
    return found


@given(P_VALUES, st.floats(0.001, 0.2))
def test_holm_rejects_where_the_adjusted_p_value_is_at_most_the_level(p_values, level):
    levels, adjusted = holm(p_values, level), holm_adjusted(p_values)
    close = {key for key in p_values if adjusted[key] == pytest.approx(level)}
    for key in p_values.keys() - close:
        assert (p_values[key] <= levels[key]) is (adjusted[key] <= level)


@given(P_VALUES, st.floats(0.001, 0.2))
def test_screening_rejects_where_scipys_adjusted_p_value_is_at_most_the_level(p_values, level):
    one = screening(p_values, level)
    adjusted = stats.false_discovery_control(list(p_values.values()))
    for p, value in zip(p_values.values(), adjusted, strict=True):
        if value != pytest.approx(level):
            assert (p <= one) is bool(value <= level)


def test_benjamini_and_hochbergs_own_example_rejects_four_of_fifteen():
    # Benjamini and Hochberg (1995), section 3.2; Holm's procedure rejects three.
    printed = (0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240)
    p_values = dict(enumerate((*printed, 0.4262, 0.5719, 0.6528, 0.7590, 1.0)))
    assert sum(p <= screening(p_values, 0.05) for p in p_values.values()) == 4
    assert sum(p <= holm(p_values, 0.05)[key] for key, p in p_values.items()) == 3


def test_looks_lower_every_level():
    found = holm({"a": 0.001, "b": 0.5}, 0.05, nominal=lambda level: level / 10)
    assert found == {"a": pytest.approx(0.0025), "b": pytest.approx(0.005)}


def test_a_family_of_none_has_no_levels():
    assert holm({}, 0.05) == {}

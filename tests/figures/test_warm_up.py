"""How far two parts of a pace may lie apart: two standard errors, by their lengths."""

import pytest

from prony.figures.steady_state import warm_after

# Its deviation, by the differences of neighbours, is about 3: two standard errors of two fours are about 4.
NOISE = (1, -3, 2, 0, 0, 3, -2, 1, -3, 2, -1, 2)


@pytest.mark.parametrize(("apart", "found"), [(3, 0), (6, None)])
def test_a_pace_still_changes_when_its_last_two_thirds_are_two_standard_errors_apart(apart, found):
    pace = [1000 + one + (apart + 0.5) * (k >= 8) for k, one in enumerate(NOISE)]
    assert warm_after(pace, 0.0) == found

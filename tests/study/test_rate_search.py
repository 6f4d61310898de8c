"""A search for the highest rate ends where another rate, and its fresh trials, would take too long."""

from types import SimpleNamespace

import pytest

from prony.study.rates import _Search


@pytest.mark.parametrize(
    ("most_ns", "measured_ns", "done", "told"),
    [
        (None, 10**12, 9, True),
        (100, 0, 0, True),
        # Ten trials took 40, so one more rate and five fresh trials take 24.
        (64, 40, 10, True),
        (63, 40, 10, False),
    ],
)
def test_one_more_rate_is_measured_if_its_fresh_trials_fit_too(most_ns, measured_ns, done, told):
    study = SimpleNamespace(most_ns=most_ns, plan=SimpleNamespace(blocks=5))
    ledger = SimpleNamespace(entries=dict.fromkeys(range(done)), measured_ns=measured_ns)
    search = _Search(SimpleNamespace(study=study), ledger, None, None, [])
    assert search.has_time() is told

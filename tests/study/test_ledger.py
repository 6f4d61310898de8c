"""The ledger remembers what it archives as it would read it again."""

from archive.test_archive import WORKLOAD, closed_trial, plan_of
from prony.archive import create, open_archive
from prony.model.facts import Fingerprint
from prony.model.observation import Slice
from prony.study import ledger as ledger_module
from prony.study.ledger import Ledger, entry_of


def test_what_rounds_take_beside_their_turns_is_measured_time_once(tmp_path, monkeypatch):
    now = [0]
    monkeypatch.setattr(ledger_module.time, "monotonic_ns", lambda: now[0])
    slices = [Slice(0, 0, 100, 0, 0, 170, 1, 1, 0, None, 0, 0, 0)]
    with create(tmp_path / "a.prony", plan_of(WORKLOAD), Fingerprint()) as writer:
        ledger = Ledger(writer)
        ledger.append(closed_trial())
        before_ns = ledger.measured_ns
        with ledger.timed():
            ledger.append_slices(0, {1: slices})
            now[0] += 1000
        assert ledger.measured_ns == before_ns + 1000


def test_slices_belong_to_the_last_attempt_and_take_time(tmp_path):
    slices = [Slice(n, 0, 100 * n, 0, 0, 100 * n + 70, 1, 1, 0, None, 0, 0, 0) for n in range(3)]
    with create(tmp_path / "a.prony", plan_of(WORKLOAD), Fingerprint()) as writer:
        ledger = Ledger(writer)
        for attempt in range(2):
            ledger.append(closed_trial(attempt=attempt))
        before_ns = ledger.measured_ns
        assert not ledger.has_slices(0, {1})
        ledger.append_slices(0, {1: slices})
        assert [ledger.has_slices(*at) for at in ((0, {1, 2}), (1, {1}), (0, {2}))] == [True, False, False]
        assert ledger.measured_ns == before_ns + 210
    with open_archive(tmp_path / "a.prony") as archive:
        assert dict(entry_of(one.trial) for one in archive.trials()) == ledger.entries

"""The machine's clock is set while a study runs: its trials and its report are there all the same."""

import time

import pytest

from prony.archive import open_archive
from prony.reading.study import read_archive

DAY_NS = 86_400_000_000_000


@pytest.mark.parametrize("step_ns", [-DAY_NS, DAY_NS])
def test_a_clock_that_is_set_at_each_look_spoils_neither_archive_nor_report(world, monkeypatch, step_ns):
    now, looks = time.time_ns, iter(range(1_000_000))
    monkeypatch.setattr(time, "time_ns", lambda: now() + next(looks) * step_ns)
    world.measure(world.study())
    with open_archive(world.folder / "out.prony") as archive:
        reading = read_archive(archive)
        assert len(list(archive.trials())) == 12
    assert reading.groups

"""A study of a length of time: as many blocks as there is time for, five at least."""

import pytest

from prony.core.units import SECOND_NS
from prony.study import run


class Held:
    """A ledger of so many blocks that earlier runs took so long for."""

    def __init__(self, blocks=0, seconds=0):
        self.blocks, self.measured_ns = blocks, seconds * SECOND_NS

    def has_after(self, block):
        return block + 1 < self.blocks


NOTHING = Held()


def blocks_of(monkeypatch, length_s, block_s, held=NOTHING, most=None):
    """Return which blocks are run, each taking so long where it is not held already."""
    now, ran = [7 * SECOND_NS], []
    monkeypatch.setattr("prony.study.run.time.monotonic_ns", lambda: now[0])

    def run_block(block):
        ran.append(block)
        now[0] += 0 if block < held.blocks else block_s * SECOND_NS

    stopped = run._run_for(length_s * SECOND_NS, held, run_block, most)
    assert len(ran) == (stopped.blocks if stopped else most)
    return ran


@pytest.mark.parametrize(
    ("length_s", "block_s", "blocks"), [(100, 10, 10), (109, 10, 10), (60, 30, 5), (600, 29, 20)]
)
def test_no_block_begins_that_would_end_after_it(monkeypatch, length_s, block_s, blocks):
    assert blocks_of(monkeypatch, length_s, block_s) == list(range(blocks))


@pytest.mark.parametrize(("held", "blocks"), [(Held(7, 70), 10), (Held(3, 30), 10), (Held(12, 120), 12)])
def test_what_earlier_runs_took_is_part_of_it(monkeypatch, held, blocks):
    assert blocks_of(monkeypatch, 100, 10, held) == list(range(blocks))


@pytest.mark.parametrize(("most", "block_s", "blocks"), [(8, 10, 8), (8, 15, 6), (8, 100, 5), (2, 100, 2)])
def test_a_study_of_so_many_blocks_has_no_more_and_fewer_where_time_is_up(monkeypatch, most, block_s, blocks):
    assert blocks_of(monkeypatch, 100, block_s, most=most) == list(range(blocks))

"""Which other programs used the CPUs of a window, by looks at all processes."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from prony.model.facts import OtherProgram
from prony.sandbox.watch import others
from prony.sandbox.watch.others import OtherPrograms, named_of, used_between
from prony.sandbox.watch.partners import _above, all_parents

MS = 1_000_000
# It uses some CPU time, which only its own clock knows, and stays.
BURST = """
import sys, time

input()
until = time.process_time() + 0.4
while time.process_time() < until:
    pass
print("it is over", flush=True)
sys.stdin.read()
"""


def process(pid, own=0, waited=0, *, parent=1, began=0, name="a"):
    return SimpleNamespace(
        **{"pid": pid, "parent_pid": parent, "start_time_ticks": began, "command": name},
        **{"user_ns": own * MS, "system_ns": 0, "waited_ns": waited * MS},
    )


def look(*processes):
    return {(one.pid, one.start_time_ticks): one for one in processes}


def used(before, after):
    return {pid: one_ns // MS for (pid, _), one_ns in used_between(look(*before), look(*after)).items()}


def test_a_process_used_what_its_clocks_went_on():
    assert used([process(7, 100)], [process(7, 130)]) == {7: 30}


def test_a_new_process_used_all_that_it_has():
    assert used([process(1)], [process(1), process(7, 30, 5, began=9)]) == {1: 0, 7: 35}


def test_a_process_that_a_look_has_missed_counts_from_then_on():
    before, then = [process(1), process(6, began=8)], process(7, 5000, began=3)
    assert used(before, [*before, then]) == {1: 0, 6: 0}
    assert used([*before, then], [*before, process(7, 5010, began=3)])[7] == 10


def test_what_nobody_saw_before_it_ended_counts_with_the_one_that_waited_for_it():
    assert used([process(7)], [process(7, 0, 80)]) == {7: 80}


@pytest.mark.parametrize("above", [7, 8])
def test_what_was_seen_before_it_ended_counts_once(above):
    """Of its own parent, and of the next one that is still there."""
    before = [process(7), process(8, parent=7), process(9, 60, 10, parent=above)]
    after = [process(7, 0, 80), *([process(8, parent=7)] if above == 7 else [])]
    assert used(before, after)[7] == 10


def test_numbers_that_lead_in_a_circle_end():
    before = [process(7, 1, parent=8), process(8, 1, parent=7)]
    assert used(before, [process(1)]) == {1: 0}


def test_only_shares_that_matter_are_named_and_three_at_most():
    second = 1000 * MS
    found = named_of({"a": 400 * MS, "b": 70 * MS, "c": 90 * MS, "d": 80 * MS, "e": 9 * MS}, second, 2)
    assert [one.name for one in found] == ["a", "c", "d"]
    assert found[0].share == 0.2
    assert named_of({"a": 49 * MS}, second, 2) == ()
    assert named_of({"a": 100 * MS}, 4 * second, 2) == ()
    assert named_of({"a": second}, 0, 2) == ()


class Machine:
    """Processes that are there at one look after the other."""

    def __init__(self, *looks):
        self.looks = list(looks)

    def sample(self):
        return self.looks.pop(0)


@pytest.fixture
def watched(monkeypatch):
    def window(*looks, ours=()):
        monkeypatch.setattr(others, "all_parents", lambda: {1: 0, others._KERNEL: 0})
        monkeypatch.setattr(others, "CompiledSource", lambda pid, include_root: Machine(*looks))
        monkeypatch.setattr(others, "_REST", 0)
        found = OtherPrograms(lambda: ours, 1)
        found.read_at_open()
        for _ in looks[2:]:
            found.read()
        found.read_at_close()
        found._length_ns = 1000 * MS
        return found.programs()

    return window


def test_what_a_name_hides_is_shown_and_its_length_is_cut(watched):
    name = "\x1b[2J\r\u202e" + "x" * 100
    (found,) = watched([process(7, name=name)], [process(7, 300, name=name)])
    assert found.name.isprintable()
    assert len(found.name) <= 33
    assert found.name.startswith("\\x1b[2J\\r")


def test_neither_ones_own_nor_what_has_left_them_is_another_program(watched):
    """The 9 lost its parent 8, and init took it."""
    first = [process(7), process(8, parent=7), process(9, parent=8), process(5, name="film")]
    last = [process(7, 500), process(9, 400, parent=1), process(5, 200, name="film")]
    assert watched(first, last, ours=(7,)) == (OtherProgram("film", 0.2),)


def test_a_program_is_called_by_its_last_name(watched):
    first, last = process(7, name="sh"), process(7, 200, name="cc1plus")
    assert watched([first], [first], [last]) == (OtherProgram("cc1plus", 0.2),)


def test_a_burst_within_the_window_is_named(tmp_path):
    named = tmp_path / "someones_film"
    named.symlink_to(sys.executable)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([named, "-c", BURST], **pipes, text=True, bufsize=1) as burst:
        # Whatever else runs here is no part of this test.
        found = OtherPrograms(lambda: all_parents().keys() - _above(burst.pid, all_parents()), 1)
        found.read_at_open()
        burst.stdin.write("\n")
        assert burst.stdout.readline() == "it is over\n"
        found.read_at_close()
        seen = {one.name: one.share for one in found.programs()}
        burst.stdin.close()
    assert 0.03 <= seen["someones_film"] <= 1

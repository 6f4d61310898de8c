"""Lines come whole, whatever pieces they come in."""

import os

import pytest

from prony.core.lines import Lines, json_object


@pytest.fixture
def pipe():
    there, here = os.pipe()
    yield Lines(there), here
    os.close(there)


def test_a_line_is_taken_when_it_is_whole(pipe):
    lines, here = pipe
    os.write(here, b"one\ntw")
    assert lines.take() == [b"one"]
    assert lines.take() == []
    os.write(here, b"o\r\n\n")
    assert lines.take() == [b"two\r", b""]
    assert not lines.ended
    os.close(here)
    assert lines.take(1.0) == []
    assert lines.ended


def test_lines_and_blocks_come_one_after_the_other(pipe):
    lines, here = pipe
    os.write(here, b"4\na\nb\nafter\nhalf")
    assert lines.line() == b"4"
    assert lines.block(4) == b"a\nb\n"
    assert lines.line() == b"after"
    assert lines.line(silence_s=0.01) is None
    assert not lines.ended
    os.close(here)
    assert lines.line() is None
    assert lines.block(5) is None
    assert lines.block(4) == b"half"


@pytest.mark.parametrize("line", [b"", b"[]", b"1", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(line):
    with pytest.raises(ValueError):
        json_object(line)

"""A build that ends before it is marked as complete leaves nothing."""

import errno
import os

import pytest

from prony.catalog.install.child import FinishedCommand
from prony.catalog.install.seal import filling, read_mark, seal, write_mark


def test_a_folder_that_is_marked_stays(tmp_path):
    with filling(tmp_path / "made"):
        (tmp_path / "made" / "out").mkdir()
        write_mark(tmp_path / "made", {}, seal(tmp_path / "made" / "out", os.geteuid()))
    assert read_mark(tmp_path / "made") is not None


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_whatever_ends_a_build_removes_what_it_has_made(tmp_path, error):
    def fill():
        with filling(tmp_path / "made"):
            (tmp_path / "made" / "half").write_text("x")
            raise error

    with pytest.raises(type(error)):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_found_no_space_says_so_and_no_other_does(tmp_path):
    FinishedCommand(1, "", "error: no such package\n").check_room(tmp_path)
    FinishedCommand(0, "", "warning: No space left on device\n").check_room(tmp_path)
    with pytest.raises(OSError, match="No space left on device"):
        FinishedCommand(2, "", "error: write: No space left on device (os error 28)\n").check_room(tmp_path)

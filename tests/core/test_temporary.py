"""Folders for a while, and what a killed process leaves of them."""

import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from prony.core.temporary import Kind, clear_temporary, temporary_folder
from prony.sandbox.watch.stacks import PythonStacks


def killed_with_a_folder(place: Path) -> Path:
    """Return the folder of a process that was killed in its midst."""
    process = os.fork()
    if process == 0:
        with temporary_folder("target", place) as folder:
            (folder / "app").mkdir()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)
    (left,) = place.iterdir()
    return left


def test_what_a_killed_process_left_goes_with_the_next_folder(tmp_path: Path) -> None:
    left = killed_with_a_folder(tmp_path)
    with temporary_folder("fleet", tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]
    assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_used_stays(tmp_path: Path) -> None:
    with temporary_folder("engine", tmp_path) as first, temporary_folder("engine", tmp_path) as second:
        assert clear_temporary(tmp_path) == 0
        assert {first, second} == set(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["prony-cases", "prony-fleet", "fleet-1", "prony-targets-1"])
def test_a_folder_of_another_name_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert clear_temporary(tmp_path) == 0
    assert (tmp_path / name).is_dir()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "prony-fleet-1").symlink_to(tmp_path / "mine")
    assert clear_temporary(tmp_path) == 0
    assert (tmp_path / "mine").is_dir()


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_folder_of_each_kind_goes_with_any_next_one(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / f"prony-{kind}-1").mkdir()
    assert clear_temporary(tmp_path) == 1


def killed_in(place: Path, action: Callable[[], object]) -> None:
    """Run an action in a process that keeps its temporary files in ``place``, and is killed in its midst."""
    process = os.fork()
    if process == 0:
        tempfile.tempdir = str(place)
        action()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(process, 0)


def test_what_killed_ones_keep_of_stacks_is_found_again(tmp_path: Path) -> None:
    stacks = PythonStacks(lambda: (), program="true")
    killed_in(tmp_path, stacks.open_window)
    assert len(list(tmp_path.iterdir())) == 1
    assert clear_temporary(tmp_path) == 1

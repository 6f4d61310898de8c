"""The app `faulty`: what its page that reads from the disk keeps there."""

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

from lab.campaign import FOLDER

IN_MEMORY = "/dev/shm"
CALLS = 8


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER / "apps" / "faulty"))
    sys.modules.pop("faults", None)
    yield import_module("faults")
    sys.modules.pop("faults", None)


def is_mounted(kind, place):
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return any(one[1:3] == [place, kind] for one in mounts)


def test_requests_that_come_at_once_share_one_file(pages, monkeypatch):
    written = []

    def write(mib):
        time.sleep(0.05)
        written.append(mib)
        return file

    monkeypatch.setattr(pages, "written", write)
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(CALLS) as pool:
        list(pool.map(pages.reread, [1] * CALLS))
    assert written == [1]


@pytest.mark.skipif(not is_mounted("tmpfs", IN_MEMORY), reason=f"needs a tmpfs at {IN_MEMORY}")
def test_a_file_that_would_lie_in_memory_is_refused(pages, monkeypatch):
    assert pages.is_in_memory(IN_MEMORY)
    monkeypatch.setattr(tempfile, "tempdir", IN_MEMORY)
    with pytest.raises(OSError, match="is in memory, not on a disk"):
        pages.reread(1)
    assert not pages._read


def test_what_is_no_tmpfs_is_not_in_memory(pages):
    assert not pages.is_in_memory("/proc")

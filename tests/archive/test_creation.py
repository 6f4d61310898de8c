"""A new archive is there whole or not at all, whatever happens while it is made."""

import errno
import os
import resource
import signal

import pytest

from golden import build
from prony.archive import create, open_archive, remove_unheld, writer
from prony.core.errors import ArchiveError
from prony.model.plan import Plan

PLAN = Plan(name="p", title="P", text="", profile="quick", cells=(), blocks=1, seed=1)


def in_a_child(work):
    """Run ``work`` in a child of this process, and return its exit status; negative: the signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def made(path):
    create(path, PLAN, build.FINGERPRINT).close()


def test_a_disk_that_is_full_leaves_no_archive_and_has_its_message(tmp_path):
    def full():
        # As on a full disk, without one: the kernel refuses what would make a file longer.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))
        try:
            made(tmp_path / "a.prony")
        except ArchiveError as error:
            os._exit(0 if error.message.endswith("cannot be created: File too large") else 1)

    assert in_a_child(full) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_run_that_is_killed_while_it_makes_its_archive_leaves_none(tmp_path, monkeypatch, step):
    monkeypatch.setattr(writer.os, step, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    assert in_a_child(lambda: made(tmp_path / "a.prony")) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_nameless_files_gets_a_whole_archive_too(tmp_path, monkeypatch):
    opened = os.open

    def without(path, flags, *arguments, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return opened(path, flags, *arguments, **options)

    monkeypatch.setattr(writer.os, "open", without)
    made(tmp_path / "a.prony")
    with open_archive(tmp_path / "a.prony") as archive:
        assert archive.plan().name == "p"


def test_an_archive_that_is_there_already_stays_as_it_is(tmp_path):
    (tmp_path / "a.prony").write_text("mine")
    with pytest.raises(ArchiveError, match="exists already"):
        made(tmp_path / "a.prony")
    assert (tmp_path / "a.prony").read_text() == "mine"


def test_an_archive_that_somebody_writes_to_is_not_removed(tmp_path):
    path = tmp_path / "a.prony"
    with create(path, PLAN, build.FINGERPRINT), pytest.raises(ArchiveError, match="another process"):
        remove_unheld(path)
    remove_unheld(path)
    assert not path.exists()

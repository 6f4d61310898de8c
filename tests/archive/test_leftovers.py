"""What lies beside an archive is a stranger's as well: it is read with care, and never deletes or writes."""

import os
import sqlite3
import stat
import struct
import subprocess
import sys
from contextlib import closing

import pytest
from test_archive import HALF_A_TRANSACTION, WORKLOAD, closed_trial, plan_of

from prony.archive import check_free, create, open_archive, resume
from prony.core.errors import ArchiveError
from prony.model.facts import Fingerprint

MAGIC = bytes.fromhex("d9d505f920a163d7")
PAGE_BYTES = 4096
KEPT = b"not a journal's name\0"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.prony"
    with create(path, plan_of(WORKLOAD), {}) as writer:
        writer.append(closed_trial())
    return path


@pytest.fixture
def victim(tmp_path):
    victim = tmp_path / "elsewhere" / "victim"
    victim.parent.mkdir()
    victim.write_bytes(KEPT)
    return victim


def beside(path, what):
    return path.with_name(f"{path.name}-{what}")


def header(path):
    pages = path.stat().st_size // PAGE_BYTES
    return struct.pack(">8sIIIII", MAGIC, 0, 0, pages, 512, PAGE_BYTES).ljust(512, b"\0")


def naming(path, victim):
    """Return a hot journal that says that ``victim`` is its super-journal."""
    name = os.fsencode(victim)
    lock_page = 0x40000000 // PAGE_BYTES + 1
    return header(path) + struct.pack(
        f">I{len(name)}sII8s", lock_page, name, len(name), sum(name) & 0xFFFFFFFF, MAGIC
    )


def half_done(path):
    subprocess.run([sys.executable, "-c", HALF_A_TRANSACTION, str(path)], check=False)
    assert beside(path, "journal").stat().st_size > 0


def everything(folder):
    """Return all that is in a folder and below: names, kinds and contents."""
    return {
        one.relative_to(folder): one.read_bytes() if one.is_file() else stat.S_IFMT(one.lstat().st_mode)
        for one in folder.rglob("*")
    }


OPENED = {"read": open_archive, "resumed": lambda path: resume(path, Fingerprint())}


@pytest.fixture(params=OPENED)
def opened(request):
    return OPENED[request.param]


def test_the_crafted_journal_makes_sqlite_delete_its_victim(path, victim):
    beside(path, "journal").write_bytes(naming(path, victim))
    with closing(sqlite3.connect(path)) as database:
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    assert not victim.exists()


def test_a_journal_that_names_another_file_is_refused_and_deletes_nothing(path, victim, opened, tmp_path):
    beside(path, "journal").write_bytes(naming(path, victim))
    before = everything(tmp_path)
    with pytest.raises(
        ArchiveError, match=r"a\.prony-journal` names another file, which SQLite would delete"
    ):
        opened(path)
    assert everything(tmp_path) == before


def test_a_whole_journal_that_names_another_file_deletes_nothing(path, victim, opened, tmp_path):
    half_done(path)
    with beside(path, "journal").open("ab") as journal:
        journal.write(naming(path, victim)[512:])
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match="names another file"):
        opened(path)
    assert everything(tmp_path) == before


def as_link(journal, other):
    journal.symlink_to(other)


def as_hard_link(journal, other):
    journal.hardlink_to(other)


def as_folder(journal, other):
    journal.mkdir()


def as_fifo(journal, other):
    os.mkfifo(journal)


@pytest.mark.parametrize("kind", [as_link, as_hard_link, as_folder, as_fifo])
@pytest.mark.parametrize("what", ["journal", "wal", "shm"])
def test_what_is_no_plain_file_beside_an_archive_is_refused(path, victim, opened, tmp_path, kind, what):
    victim.write_bytes(naming(path, victim.with_name("second")))
    victim.with_name("second").write_bytes(KEPT)
    kind(beside(path, what), victim)
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match=rf"`.*a\.prony-{what}`"):
        opened(path)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("what", ["wal", "shm"])
@pytest.mark.parametrize("content", [b"", b"x" * 4096])
def test_a_write_ahead_log_is_refused(path, opened, tmp_path, what, content):
    beside(path, what).write_bytes(content)
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match=rf"a\.prony-{what}` lies beside it"):
        opened(path)
    assert everything(tmp_path) == before


def test_an_archive_that_asks_for_a_write_ahead_log_is_refused(path, opened, tmp_path):
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match="write-ahead log"):
        opened(path)
    assert everything(tmp_path) == before


def test_reading_rolls_back_a_copy_and_leaves_archive_and_journal(path, tmp_path):
    with open_archive(path) as archive:
        whole = list(archive.trials())
    half_done(path)
    before = everything(tmp_path)
    with open_archive(path) as archive:
        assert list(archive.trials()) == whole
    assert everything(tmp_path) == before


def test_a_read_copy_leaves_no_file(path, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    half_done(path)
    with open_archive(path):
        assert list(scratch.iterdir()) == []
    beside(path, "journal").write_bytes(header(path).replace(struct.pack(">I", PAGE_BYTES), b"\0\0\0\3"))
    with pytest.raises(ArchiveError):
        open_archive(path)
    assert list(scratch.iterdir()) == []


def test_a_resumed_archive_is_rolled_back_for_good(path):
    with open_archive(path) as archive:
        whole = list(archive.trials())
    half_done(path)
    with resume(path, Fingerprint()):
        pass
    assert not beside(path, "journal").exists()
    with open_archive(path) as archive:
        assert list(archive.trials()) == whole
        assert len(archive.runs()) == 2


def test_an_archive_named_by_a_link_has_its_neighbours_looked_at(path, victim, opened, tmp_path):
    beside(path, "journal").write_bytes(naming(path, victim))
    link = tmp_path / "elsewhere" / "b.prony"
    link.symlink_to(path)
    with pytest.raises(ArchiveError, match="names another file"):
        opened(link)
    assert victim.read_bytes() == KEPT


def test_a_journal_that_would_swell_the_archive_is_refused(path, opened, tmp_path):
    swollen = struct.pack(">8sIIIII", MAGIC, 0, 0, 2**31, 512, PAGE_BYTES).ljust(512, b"\0")
    beside(path, "journal").write_bytes(swollen)
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match=r"a\.prony-journal` is damaged"):
        opened(path)
    assert everything(tmp_path) == before


def test_a_journal_above_the_cap_is_refused(path, opened):
    with beside(path, "journal").open("wb") as journal:
        journal.write(header(path))
        journal.truncate(2**40)
    with pytest.raises(ArchiveError, match=r"a\.prony-journal` has 1,099,511,627,776 bytes"):
        opened(path)


def test_a_journal_that_appears_while_an_archive_is_written_is_refused(path, victim):
    with resume(path, Fingerprint()) as writer:
        writer.append(closed_trial(1))
        beside(path, "journal").unlink()
        beside(path, "journal").write_bytes(naming(path, victim))
        with pytest.raises(ArchiveError, match="is not this run's journal"):
            writer.append(closed_trial(2))
    assert victim.read_bytes() == KEPT


def test_a_write_ahead_log_that_appears_while_an_archive_is_written_is_refused(path):
    with resume(path, Fingerprint()) as writer:
        beside(path, "wal").write_bytes(b"x" * 4096)
        with pytest.raises(ArchiveError, match=r"a\.prony-wal` lies beside it"):
            writer.append(closed_trial(1))


def test_a_new_archive_takes_no_journal_that_was_there_before(tmp_path, victim):
    path = tmp_path / "new.prony"
    beside(path, "journal").symlink_to(victim)
    with pytest.raises(ArchiveError, match=r"new\.prony-journal`"):
        create(path, plan_of(WORKLOAD), {})
    assert victim.read_bytes() == KEPT
    assert not path.exists()


def test_a_closed_archive_has_nothing_beside_it(path, tmp_path):
    assert [one.name for one in tmp_path.iterdir()] == ["a.prony"]
    resume(path, Fingerprint()).close()
    assert [one.name for one in tmp_path.iterdir()] == ["a.prony"]


def test_a_second_writer_is_refused(path):
    with resume(path, Fingerprint()):
        with pytest.raises(ArchiveError, match="is being written by another process"):
            resume(path, Fingerprint())
        with open_archive(path) as archive:
            assert len(archive.runs()) == 2


def test_what_is_being_written_is_known_before_anything_is_prepared(path):
    check_free(path)
    with (
        resume(path, Fingerprint()),
        pytest.raises(ArchiveError, match="is being written by another process"),
    ):
        check_free(path)
    check_free(path)


def test_an_archive_that_is_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.prony")
    with pytest.raises(ArchiveError, match="is not a file"):
        open_archive(tmp_path / "a.prony")


def test_a_draft_of_a_killed_writers_journal_goes_with_the_next_writer(path, tmp_path):
    left = tmp_path / f".{path.name}-journal-a1b2c3d4"
    others = [tmp_path / f".{path.name}-journal-x", tmp_path / f".b-{path.name}-journal-a1b2c3d4"]
    for file in (left, *others):
        file.touch()
    with resume(path, Fingerprint()):
        assert not left.exists()
    assert {path, *others} == set(tmp_path.iterdir())

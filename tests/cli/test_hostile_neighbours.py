"""A file that a stranger put beside an archive deletes nothing, whichever command opens the archive."""

import os
import struct

import pytest

from golden.build import study_two

MAGIC = bytes.fromhex("d9d505f920a163d7")


def journal_naming(archive, victim):
    """Return a journal of a transaction half done, whose super-journal is ``victim``."""
    pages, name = archive.stat().st_size // 4096, os.fsencode(victim)
    head = struct.pack(">8sIIIII", MAGIC, 0, 0, pages, 512, 4096).ljust(512, b"\0")
    place = 0x40000000 // 4096 + 1
    return head + struct.pack(f">I{len(name)}sII8s", place, name, len(name), sum(name), MAGIC)


@pytest.mark.parametrize(
    "command",
    [
        ("report", "out.prony"),
        ("compare", "out.prony", "out.prony"),
        ("run", "--resume", "out.prony"),
        ("run", "--resume", "out.prony", "--trust-plan", "--force"),
    ],
)
def test_a_journal_that_names_another_file_deletes_nothing(said, folder, command):
    study_two(folder / "out.prony")
    victim = folder / "victim"
    victim.write_text("mine")
    (folder / "out.prony-journal").write_bytes(journal_naming(folder / "out.prony", victim))
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    done = said(*command)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    assert done.status == 3
    assert "out.prony-journal` names another file, which SQLite would delete" in done.err

"""How large a subject's files may become, and the ceilings of what nobody limited."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.sandbox.subjects import eventually, launch_script

from prony.core.units import GIB, MIB
from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxChoice
from prony.sandbox import Sandbox
from prony.sandbox.choice import (
    PIDS,
    ceilings,
    disk_bytes,
    disk_files,
    memory_bytes,
    pids_of_user,
    with_ceilings,
)
from prony.sandbox.supervisor import Growth, Use

MOST = Use(64 * MIB, 1000)


def grown(folder: Path, size_bytes: int) -> Path:
    file = folder / "large"
    with file.open("wb") as opened:
        os.posix_fallocate(opened.fileno(), 0, size_bytes)
    return file


def test_a_folder_below_its_limit_is_left_alone(tmp_path: Path) -> None:
    watched = Growth([str(tmp_path)], MOST)
    grown(tmp_path, 16 * MIB)
    assert not watched.exceeded(list)


def test_a_folder_beyond_its_limit_is_noticed(tmp_path: Path) -> None:
    watched = Growth([str(tmp_path)], MOST)
    grown(tmp_path, 256 * MIB)
    assert watched.exceeded(list)


def test_a_file_that_was_removed_and_is_still_open_counts(tmp_path: Path) -> None:
    watched = Growth([str(tmp_path)], MOST)
    file = grown(tmp_path, 256 * MIB)
    with file.open("rb"):
        file.unlink()
        assert watched.exceeded(lambda: [os.getpid()])


def test_what_others_fill_is_not_the_subjects(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    watched = Growth([str(tmp_path / "own")], MOST)
    grown(tmp_path, 256 * MIB)
    assert not watched.exceeded(list)


def test_a_subject_that_outgrew_its_folder_is_killed_and_named(
    any_sandbox: Sandbox, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.sandbox.order.disk_bytes", lambda _folder: 64 * MIB)
    script = """
import os, time
for n in range(8):
    with open(f"file-{n}", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 48 << 20)
time.sleep(60)
"""
    launch: Launch = launch_script(any_sandbox, script)
    with any_sandbox.start(launch, placement) as subject:
        assert eventually(lambda: subject.exit_reason() is not None, timeout_s=15)
        assert subject.exit_reason() == "the server was killed because its files took more than 64.0 MiB"


def test_a_typed_limit_wins_over_a_ceiling() -> None:
    full = with_ceilings(SandboxChoice(pids=7))
    assert (full.pids, full.memory_bytes) == (7, memory_bytes())
    assert set(ceilings(SandboxChoice(pids=7), Path("/"), {})) == {"disk"}


def test_what_its_user_runs_already_does_not_count_against_a_subject() -> None:
    before = pids_of_user(os.getuid())
    assert before > PIDS
    with ThreadPoolExecutor(50) as pool:
        barrier = Barrier(51)
        for _ in range(50):
            pool.submit(barrier.wait)
        during = pids_of_user(os.getuid())
        barrier.wait()
    assert during >= before + 25


def test_ceilings_are_far_above_what_a_server_needs(tmp_path: Path) -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0.79 * total < memory_bytes() < 0.81 * total
    assert PIDS == 4096
    assert 0 < disk_bytes(tmp_path / "not" / "there") <= 8 * GIB


def test_empty_files_count_as_space_does(tmp_path: Path) -> None:
    watched = Growth([str(tmp_path)], MOST)
    for number in range(1100):
        (tmp_path / str(number)).touch()
    assert watched.exceeded(list) == {"files": 1000}


def test_who_has_more_open_than_any_server_is_not_looked_at_as_long_as_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.sandbox.supervisor.MOST_OPEN", 50)
    watched, beside = tmp_path / "watched", tmp_path / "beside"
    watched.mkdir()
    beside.mkdir()
    growth = Growth([str(watched)], MOST)
    for number in range(1100):
        (beside / str(number)).touch()
    with (beside / "0").open() as file:
        copies = [os.dup(file.fileno()) for _ in range(1001)]
    try:
        assert growth.exceeded(lambda: [os.getpid()]) == {"files": 1000}
    finally:
        for copy in copies:
            os.close(copy)


ENTRIES = {
    "files": "open(f'file-{n}', 'w').close()",
    "folders": "os.mkdir(f'folder-{n}')",
    "links": "os.symlink('x', f'link-{n}')",
    "pipes": "os.mkfifo(f'pipe-{n}')",
    "sockets": "socket.socket(socket.AF_UNIX).bind(f'socket-{n}')",
    "files in folders": "os.makedirs(f'in/{n % 50}/{n}')",
}


@pytest.mark.parametrize("what", ENTRIES)
def test_a_subject_that_makes_empty_files_is_killed_and_named(
    any_sandbox: Sandbox, placement: Placement, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("prony.sandbox.order.disk_files", lambda _folder: 2000)
    script = f"""
import os, socket, time
if os.fork() == 0:
    while True: os.write(1, b"x" * 65536)
for n in range(5000):
    {ENTRIES[what]}
time.sleep(60)
"""
    launch: Launch = launch_script(any_sandbox, script)
    with any_sandbox.start(launch, placement) as subject:
        assert eventually(lambda: subject.exit_reason() is not None, timeout_s=15)
        assert subject.exit_reason() == "the server was killed because its files were more than 2,000"


def test_half_of_the_files_that_a_disk_has_room_for_are_left(tmp_path: Path) -> None:
    assert 0 < disk_files(tmp_path / "not" / "there") <= 200_000


def test_who_writes_without_a_pause_keeps_the_supervisor_from_nothing() -> None:
    script = """
import os
import subprocess
import sys
from prony.sandbox.supervisor import Ring, _Supervisor
watching = _Supervisor.__new__(_Supervisor)
watching._ring, watching._log = Ring(), os.open("/dev/zero", os.O_RDONLY)
watching._collect_log()
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=20)

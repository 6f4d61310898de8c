"""Trees that strangers make: of any depth, with anything in them."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import passable_folder
from prony.catalog.schema.apps import folder_digest
from prony.core import trees
from prony.core.errors import HostError
from prony.core.trees import content, copy_file, remove_tree, sizes, walk

DEEP = 20_000


def folders_in_folders(place: Path, levels: int) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("last", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def test_folders_in_folders_are_removed_whatever_their_depth(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    folders_in_folders(tree, DEEP)
    try:
        remove_tree(tree)
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_removed_and_what_it_names_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(tmp_path / "kept")
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tree / "socket"))
        remove_tree(tree)
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


def test_a_link_in_place_of_the_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(OSError, match="it is a link"):
        remove_tree(tmp_path / "link")


def test_an_ordinary_user_removes_what_was_closed(tmp_path: Path) -> None:
    script = f"""
import os, sys
from pathlib import Path
from prony.core.trees import remove_tree
if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)
tree = Path({str(tmp_path)!r}, "tree")
(tree / "a" / "b").mkdir(parents=True)
(tree / "a" / "b" / "file").touch()
for path in (tree / "a" / "b", tree / "a", tree): path.chmod(0)
remove_tree(tree)
sys.exit(tree.exists())
"""
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == os.geteuid() and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o005)
    tmp_path.chmod(0o777)
    subprocess.run([sys.executable, "-c", script], check=True)


# What a subject of another user may leave in a folder of which `d` is a descriptor.
LEFT = {
    "a closed chain": """
chain = [d]
for _ in range(900):
    os.mkdir("d", dir_fd=chain[-1]); chain.append(os.open("d", os.O_RDONLY, dir_fd=chain[-1]))
for e in reversed(chain): os.fchmod(e, 0)""",
    "many names": "for k in range(30000): os.close(os.open(f'f{k}', os.O_CREAT | os.O_WRONLY, 0, dir_fd=d))",
    "long names with ends of lines": """
for k in range(1, 250): os.mkdir(bytes([k]).replace(b"/", b".") * 200 + b"\\n%d" % k, 0, dir_fd=d)""",
    "names that are no text": """
for k in range(200):
    os.mkdir(b"\\xff\\xfe%d" % k, 0, dir_fd=d); os.symlink(b"/", b"\\xffl%d" % k, dir_fd=d)""",
    "wide and deep": """
for _ in range(60):
    for k in range(100): os.mkdir(f"s{k}", 0, dir_fd=d)
    os.mkdir("d", dir_fd=d); e = os.open("d", os.O_RDONLY, dir_fd=d); os.close(d); d = e""",
    "sockets, pipes and links in circles": """
import socket
os.fchdir(d)
for k in range(200):
    socket.socket(socket.AF_UNIX).bind(f"s{k}"); os.mkfifo(f"p{k}", 0); os.symlink(f"l{k}", f"l{k}")""",
}
SUBJECT = """
import os, sys
from pathlib import Path
from prony.core.users import resolve_user
from prony.sandbox.journal import open_run
user, run = resolve_user(None), open_run(resolve_user(None))
folder = run.trial_folder("trial")
if os.fork() == 0:
    if user.drop: os.setgroups([]); os.setgid(user.gid); os.setuid(user.uid)
    d = os.open(folder, os.O_RDONLY)
    exec(sys.argv[1])
    os._exit(0)
assert os.wait()[1] == 0
if sys.argv[2] == "killed": os.kill(os.getpid(), 9)
run.remove_trial_folder("trial"); run.close()
sys.exit(int(run.folder.exists()))
"""


@pytest.mark.parametrize("end", ["its end", "killed"])
@pytest.mark.parametrize("what", LEFT)
def test_what_a_subject_left_goes_with_its_trial_or_with_the_next_command(what: str, end: str) -> None:
    with passable_folder() as folder:
        environment = {**os.environ, "PRONY_CACHE": str(folder / "cache")}
        command = [sys.executable, "-c", SUBJECT, LEFT[what], end]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == (0 if end == "its end" else -9), done.stderr
        left = [*(folder / "cache" / "run").iterdir()]
        assert bool(left) == (end == "killed")
        cleaned = [sys.executable, "-m", "prony", "clean"]
        subprocess.run(cleaned, env=environment, capture_output=True, check=True, timeout=60)
        assert [*(folder / "cache" / "run").iterdir()] == []


def test_what_cannot_be_removed_keeps_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (tmp_path / "tree" / name).mkdir(parents=True)
        (tmp_path / "tree" / name / "file").touch()
    unlink, refused = os.unlink, []

    def first_refused(name: str, **where: int) -> None:
        if not refused:
            refused.append(name)
            raise PermissionError(1, "Operation not permitted", name)
        unlink(name, **where)

    monkeypatch.setattr(trees.os, "unlink", first_refused)
    with pytest.raises(PermissionError):
        remove_tree(tmp_path / "tree")
    assert len(list((tmp_path / "tree").rglob("file"))) == 1
    assert len(list((tmp_path / "tree").iterdir())) == 1


def test_sizes_count_what_lies_below_the_longest_path(tmp_path: Path) -> None:
    folders_in_folders(tmp_path, 5000)
    try:
        assert len(sizes(tmp_path)) == 5001
    finally:
        remove_tree(tmp_path)


def test_sizes_of_more_than_enough_files_do_not_enter_their_folders(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number) / "inner").mkdir(parents=True)
    assert len(sizes(tmp_path)) == 200
    assert len(sizes(tmp_path, enough=50)) in (100, 101)


def test_an_apps_folder_that_is_too_deep_is_refused_in_time(tmp_path: Path) -> None:
    folders_in_folders(tmp_path, 3000)
    started_s = time.monotonic()
    try:
        with pytest.raises(HostError, match="it is deeper than 200 folders"):
            folder_digest(tmp_path)
        assert time.monotonic() - started_s < 5
    finally:
        remove_tree(tmp_path)


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_ENTRIES", 10)
    for number in range(11):
        (tmp_path / str(number)).touch()
    with pytest.raises(HostError, match="it has more than 10 files"):
        folder_digest(tmp_path)


def test_links_that_never_end_do_not_hang_the_reader(tmp_path: Path) -> None:
    for name, target in {"kernel": "/proc/kmsg", "self": ".", "zero": "/dev/zero"}.items():
        (tmp_path / f"{name}.py").symlink_to(target)
    os.mkfifo(tmp_path / "pipe.py")
    subprocess.run(
        [
            sys.executable,
            "-c",
            f"from prony.catalog.schema.apps import *; folder_digest(Path({str(tmp_path)!r}))",
        ],
        check=True,
        timeout=20,
    )


def test_only_ordinary_files_have_a_content(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no file"):
        content(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"abc")
    assert content(tmp_path / "file") == b"abc"
    with pytest.raises(OSError, match="it is too large"):
        content(tmp_path / "file", most_bytes=2)


def test_a_tree_is_walked_as_the_standard_library_does(tmp_path: Path) -> None:
    for name in ("b/x", "a/y", "a/z/w"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()

    def sorted_(entries: object) -> list[object]:
        return sorted((path, sorted(folders), sorted(files)) for path, folders, files in entries)  # type: ignore[attr-defined]

    assert sorted_(walk(tmp_path)) == sorted_(os.walk(tmp_path))


@pytest.mark.parametrize("exchanged", ["a", "a/b", "a/b/file"])
def test_a_file_whose_folder_became_a_link_is_not_copied(tmp_path: Path, exchanged: str) -> None:
    for name in ("app", "closed"):
        (tmp_path / name / "a" / "b").mkdir(parents=True)
        (tmp_path / name / "a" / "b" / "file").write_text(name)
    app, file = tmp_path / "app", tmp_path / "app" / "a" / "b" / "file"
    assert copy_file(app, file, tmp_path / "copy") == 3
    (app / exchanged).rename(tmp_path / "moved")
    (app / exchanged).symlink_to(tmp_path / "closed" / exchanged)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        copy_file(app, file, tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_what_is_closed_no_file_or_too_large_is_not_copied(tmp_path: Path) -> None:
    for name, mode in {"closed": 0o600, "sparse": 0o644}.items():
        (tmp_path / name).touch(mode)
    os.truncate(tmp_path / "sparse", 1 << 40)
    os.mkfifo(tmp_path / "pipe", 0o644)
    for name in ("closed", "pipe"):
        assert copy_file(tmp_path, tmp_path / name, tmp_path / "copy") == 0
    with pytest.raises(ValueError, match="too large to copy"):
        copy_file(tmp_path, tmp_path / "sparse", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()

"""Pipes, devices and folders in the place of a file: refused at once, never waited for, never replaced."""

import os
import stat
import threading
from pathlib import Path

import pytest

from prony.cli.options import write_output
from prony.errors import UsageError

KINDS = ("pipe", "folder", "device")
# Each option that names a file to read, with the rest of its command.
READS = {
    "--env-file": ("run", "--app", "shop:app", "--servers", "wsgiref", "--dry-run", "--env-file"),
    "--requirements": ("run", "--app", "shop:app", "--servers", "wsgiref", "--requirements"),
    "--python": ("run", "--app", "shop:app", "--servers", "wsgiref", "--python"),
    "--dir": ("run", "--app", "shop:app", "--servers", "wsgiref", "--dir"),
    "--catalog": ("servers", "--catalog"),
    "--out": ("run", "--app", "shop:app", "--servers", "wsgiref", "--out"),
    "study": ("run",),
    "archive": ("report",),
}
# Prony takes these folders for what they are.
FOLDERS = {"--python", "--dir", "--catalog"}


@pytest.fixture
def odd(folder):
    """Return the path of something that is no ordinary file."""
    (folder / "shop.py").write_text("app = None\n")
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "device").symlink_to("/dev/zero")
    return lambda kind: folder / kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", READS)
def test_what_is_no_file_is_refused_by_its_name(said, odd, option, kind):
    if option in FOLDERS and kind == "folder":
        pytest.skip("a folder is right there")
    done = said(*READS[option], odd(kind))
    assert done.status in (2, 3), done.err
    assert "\nerror: " in f"\n{done.err}"
    assert kind in done.err or "/dev/zero" in done.err
    assert "does not exist" not in done.err


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_body_without_an_end_is_refused(said, odd, kind):
    done = said("load", "http://127.0.0.1:1/", "--duration", "1s", "--body", f"@{odd(kind)}")
    assert done.status == 2
    assert f"`{odd(kind)}` is a pipe or a device; expected an ordinary file" in done.err


def test_the_shells_own_pipe_is_read(said, odd):
    reading, writing = os.pipe()
    os.write(writing, b"A=1\n")
    os.close(writing)
    done = said(*READS["--env-file"], f"/dev/fd/{reading}")
    os.close(reading)
    assert done.status == 0, done.err


def test_an_app_folder_with_a_pipe_is_read_without_it(said, odd, folder):
    os.mkfifo(folder / "queue.py")
    assert said("run", "--app", "shop:app", "--servers", "wsgiref", "--dry-run").status == 0


def test_a_pipe_that_nobody_reads_is_no_place_for_json(odd):
    with pytest.raises(UsageError, match=r"cannot write `.*pipe`: No such device or address"):
        write_output("{}", str(odd("pipe")))
    assert stat.S_ISFIFO(odd("pipe").stat().st_mode)


def test_a_pipe_that_somebody_reads_gets_the_json(odd):
    got = []
    reader = threading.Thread(target=lambda: got.append(odd("pipe").read_text()))
    reader.start()
    while not got and reader.is_alive():
        try:
            write_output("{}", str(odd("pipe")))
            break
        except UsageError:
            continue
    reader.join(10)
    assert got == ["{}\n"]
    assert stat.S_ISFIFO(odd("pipe").stat().st_mode)


def test_a_device_is_written_to_and_never_replaced(folder):
    (folder / "null").symlink_to("/dev/null")
    write_output("{}", str(folder / "null"))
    assert (folder / "null").is_symlink()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_in_the_place_of_an_output_is_replaced_and_its_file_left_alone(folder, link):
    (folder / "mine").write_text("before")
    getattr(folder / "out.prony.html", link)(folder / "mine")
    write_output("page", str(folder / "out.prony.html"))
    assert (folder / "mine").read_text() == "before"
    assert (folder / "out.prony.html").read_text() == "page\n"
    assert not (folder / "out.prony.html").is_symlink()

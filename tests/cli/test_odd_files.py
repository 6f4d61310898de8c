"""Pipes, devices and folders in the place of a file: refused at once, never waited for, never replaced."""

import os
import signal
import socket
import stat
import threading
from pathlib import Path

import pytest

from golden.build import study_two
from prony.cli.options import write_output
from prony.core.errors import UsageError

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


APP = "run --app shop:app --servers wsgiref --dry-run"
LOAD = "load http://127.0.0.1:9/ -n 1 -c 1"
NAMED = (
    *("report {}", "report good.prony {}", "why {}", "compare {} good.prony", "compare good.prony {}"),
    *("servers --catalog {}", "doctor --catalog {}", "servers gunicorn --unit --from {}", "run {} --dry-run"),
    *(f"{APP} --env-file {{}}", f"{APP} --requirements {{}}", f"{APP} --python {{}}", f"{APP} --dir {{}}"),
    *(f"{APP} --requests-from {{}}", f"{APP} --data {{}}", f"{APP} --groups {{}}", f"{APP} --body @{{}}"),
    *(f"{APP} --catalog {{}}", f"{APP} --current {{}}", f"{APP} --expect-body @{{}}"),
    *(f"{LOAD} --requests-from {{}}", f"{LOAD} --groups {{}}", f"{LOAD} --data {{}}"),
    *(f"{LOAD} --cacert {{}}", f"{LOAD} --cert {{}} --key {{}}", f"{LOAD} --expect-body @{{}}"),
    *("report good.prony --markdown {}", "report good.prony --csv {}"),
    "compare good.prony good.prony --markdown {}",
    *(f"{APP} --out {{}}", f"{APP} --json {{}}", "fleet certificates {}"),
)
# What draws takes seconds.
DRAWN = ("report good.prony --html {}", "report good.prony --figures {}", "report . --site {}")
WRITTEN_BY_LOAD = ("--json", "--html", "--latencies", "--hdr-log", "--prometheus")
PLACES = {
    **{
        one: one
        for one in ("pipe", "socket", "loop", "folder", "no/such", "/dev/zero", "/dev/full", "/dev/tty")
    },
    **{one: one for one in ("/proc/kmsg", "/proc/self/mem", "/proc/self/fd/0", "/dev/null/x")},
    **{"a long name": "x" * 300, "the end of a line": "a\nb", "no text": "\udcff", "an escape": "\x1b[2J"},
}
OF_LOAD = ("pipe", "folder", "/dev/full", "a long name", "no text", "an escape")


@pytest.fixture
def among_odd_ones(folder, odd, said):
    """Return a function that types a form with a place in it, and holds how that must end, in a minute."""
    study_two(folder / "good.prony")
    (folder / "loop").symlink_to("loop")

    def given_up(*_):
        raise TimeoutError("a minute")

    def type_(form, place):
        words = [word.replace("{}", PLACES[place]) for word in form.split()]
        signal.setitimer(signal.ITIMER_REAL, 60)
        try:
            done = said(*words)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert done.status in (0, 2, 3), (place, done.err)
        errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
        # A load whose requests all fail has that status, and its report for a reason.
        assert len(errors) == bool(done.status) or "0 of 1 answered as expected" in done.out, (
            place,
            done.err,
        )
        assert (done.out + done.err).replace("\n", "").replace("\t", "").isprintable(), (place, done.err)

    before = signal.signal(signal.SIGALRM, given_up)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        yield type_
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("form", [*NAMED, *(pytest.param(one, marks=pytest.mark.slow) for one in DRAWN)])
def test_whatever_a_file_is_that_was_named_a_command_ends_with_one_line(among_odd_ones, form):
    for place in PLACES:
        among_odd_ones(form, place)


@pytest.mark.parametrize("option", WRITTEN_BY_LOAD)
def test_whatever_a_load_is_to_write_it_ends_with_one_line(among_odd_ones, option):
    for place in OF_LOAD:
        among_odd_ones(f"{LOAD} {option} {{}}", place)

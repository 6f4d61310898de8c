"""Disks that are full, read-only or gone, a poor /proc, few descriptors, odd clocks, homes and names.

Each ends with the right status and one message, or does no harm; never as a fault in Prony itself.
"""

from pathlib import Path

import pytest

from prony.archive import open_archive

RUN = (
    *("run", "--app", "hello", "--servers", "wsgiref", "-c", "2", "--duration", "300ms", "--warmup", "100ms"),
    *("--no-calibration", "--force", "--out"),
)
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
slow = pytest.mark.slow


def refused(done, words):
    """Hold that a command ended with one message that has these words."""
    assert done.status == 3
    assert done.err.count("error: ") == 1
    assert words in done.err.partition("error: ")[2]


# --- disks ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_full_disk_of_trial_folders_makes_trials_invalid_with_the_reason(unlucky, prony):
    script = f"mount -t tmpfs -o size=4k none {prony.cache}/run"
    done = unlucky(script, *RUN, "a.prony", "--repeats", "1", "--full")
    assert done.status == 3
    assert "invalid: cannot write `" in done.err
    assert "serve.py`: No space left on device" in done.out


@pytest.mark.parametrize("size", [pytest.param("64k", marks=slow), pytest.param("3m", marks=slow), "12m"])
def test_a_disk_that_is_full_while_an_environment_is_built_leaves_none(unlucky, prony, folder, size):
    prony.cache.mkdir(parents=True, exist_ok=True)
    waitress = tuple("waitress" if word == "wsgiref" else word for word in RUN)
    done = unlucky(
        f"mount -t tmpfs -o size={size} none {prony.cache}",
        *(*waitress, "a.prony", "--repeats", "1"),
        # Nothing of it was left, and with room it is built.
        after=f"ls -A {prony.cache}/environments a.prony >{folder}/left 2>/dev/null || true\n"
        f'mount -o remount,size=1g {prony.cache}\n"$@" >{folder}/second 2>&1 && echo 0 >{folder}/status',
    )
    refused(done, "No space left on device")
    left = (folder / "left").read_text().split()
    assert [name for name in left if not name.endswith((".lock", ":"))] == []
    assert (folder / "status").read_text() == "0\n", (folder / "second").read_text()


def test_an_archive_whose_disk_is_full_under_way_keeps_the_trials_before(unlucky, folder):
    (folder / "disk").mkdir()
    done = unlucky(
        f"mount -t tmpfs -o size=300k none {folder}/disk",
        *(*RUN, "disk/a.prony", "--repeats", "100"),
        after=f"cp {folder}/disk/* {folder}",  # the disk goes with its namespace
    )
    refused(done, "`disk/a.prony` cannot be written: database or disk is full")
    with open_archive(folder / "a.prony") as archive:
        assert 0 < len(list(archive.trials())) < 100
    assert list(folder.glob("*-journal")) == []


@slow
@pytest.mark.parametrize("end", ["umount -l disk", "mount -o remount,ro disk"])
def test_an_archive_whose_disk_goes_under_way_ends_the_study_in_order(unlucky, folder, end):
    (folder / "disk").mkdir()
    unlucky(
        f"mount -t tmpfs none {folder}/disk\n(sleep 4; {end}) >/dev/null 2>&1 &",
        *(*RUN, "disk/a.prony", "--repeats", "5"),
    )


@slow
def test_a_cache_that_is_read_only_is_told(unlucky, prony, folder):
    refused(unlucky(f"mount -t tmpfs -o ro none {prony.cache}", *RUN, "a.prony"), "Read-only file system")
    assert not (folder / "a.prony").exists()


@slow
def test_run_folders_that_are_read_only_are_told_and_leave_no_archive(unlucky, prony, folder):
    refused(
        unlucky(f"mount -t tmpfs -o ro none {prony.cache}/run", *RUN, "a.prony"),
        "Read-only file system",
    )
    assert not (folder / "a.prony").exists()


@slow
@pytest.mark.parametrize("place", ["/nowhere", "/proc"])
def test_a_study_needs_no_folder_of_temporary_files(unlucky, place):
    assert unlucky("", *RUN, "a.prony", "--repeats", "1", TMPDIR=place).status == 0


# --- /proc, descriptors, clock ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_proc_without_the_boots_name_is_told(unlucky, folder):
    done = unlucky("mount -t tmpfs none /proc/sys/kernel", *RUN, "a.prony")
    refused(done, "the system does not show which boot it is in")
    assert not (folder / "a.prony").exists()


@slow
@pytest.mark.parametrize("part", ["sys/net", "pressure"])
def test_a_study_runs_without_a_part_of_proc(unlucky, part):
    script = f"mount -t tmpfs none /proc/{part}"
    assert unlucky(script, *RUN, "a.prony", "--repeats", "1").status == 0


@pytest.mark.slow
def test_with_64_descriptors_a_study_runs_when_it_is_forced(unlucky):
    done = unlucky("ulimit -n 64", *RUN, "a.prony", "--repeats", "1")
    assert done.status == 0
    assert "open files: 64; needed: " in done.err


@slow
def test_a_study_of_another_decade_is_continued_in_this_one(unlucky):
    if not FAKETIME.exists():
        pytest.skip("libfaketime is not installed")
    faked = {"LD_PRELOAD": str(FAKETIME)}
    typed = (*RUN, "a.prony", "--repeats", "1")
    assert unlucky("", *typed, **faked, FAKETIME="+3650d").status == 0
    assert unlucky("", *typed).status == 0


# --- homes and names --------------------------------------------------------------------------------------


@slow
@pytest.mark.parametrize("script", ["unset HOME", "export HOME=/nowhere", "export HOME=/proc"])
def test_a_study_needs_no_home(unlucky, script):
    assert unlucky(script, *RUN, "a.prony", "--repeats", "1").status == 0


@slow
def test_archives_apps_and_working_folders_may_have_any_name(unlucky, folder):
    place = folder / "a b\nü"
    place.mkdir()
    (place / "shop.py").write_text(
        "def app(environ, start_response):\n    start_response('200 OK', [])\n    return [b'hi']\n"
    )
    out = place / "o \n ü.prony"
    arguments = ["shop:app" if word == "hello" else word for word in RUN]
    done = unlucky('cd "$PLACE"', *arguments, out, "--repeats", "1", PLACE=str(place))
    assert done.status == 0, done.err
    assert unlucky("", "report", out).status == 0


def test_a_folder_whose_name_is_no_text_is_refused_for_an_app(unlucky, folder):
    place = folder / "a\udcff"
    place.mkdir()
    (place / "shop.py").write_text("app = None\n")
    arguments = ["shop:app" if word == "hello" else word for word in RUN]
    done = unlucky("", *arguments, "a.prony", "--dir", place)
    assert done.status == 2
    assert "has a name that is not UTF-8" in done.err

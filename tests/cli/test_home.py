"""A user without a home, and without a cache of its own choice: one message, and what to set."""

import pwd

import pytest

from golden.build import study_two
from prony.core import users as runas


@pytest.mark.parametrize("command", [("env",), ("clean",), ("run", "--app", "hello", "--servers", "wsgiref")])
def test_a_command_that_needs_the_cache_of_a_user_without_a_home_says_what_to_set(said, monkeypatch, command):
    def no_entry(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(runas.os, "geteuid", lambda: 12345)
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    for name in ("HOME", "PRONY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    done = said(*command)
    assert done.status == 3
    assert done.err.count("error: ") == 1
    assert "error: the user `12345` has no home folder, and no place for what Prony builds" in done.err
    assert "hint: set PRONY_CACHE to a folder that it may write" in done.err


def test_an_archive_is_read_without_a_home(said, folder, monkeypatch):
    study_two(folder / "out.prony", blocks=1)
    monkeypatch.setattr(runas.os, "geteuid", lambda: 12345)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    for name in ("HOME", "PRONY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert said("report", "out.prony").status == 0


@pytest.mark.parametrize("option", ["--dir", "--python", "--requirements", "--env-file"])
def test_a_home_of_nobody_is_refused_by_its_option(said, folder, option):
    (folder / "shop.py").write_text("app = None\n")
    done = said("run", "--app", "shop:app", "--servers", "waitress", "--dry-run", option, "~no-such-user/x")
    assert (done.status, done.err.count("error: ")) == (2, 1), done.err
    assert "~no-such-user/x" in done.err

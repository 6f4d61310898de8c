"""Users that a machine does not know, as in a container that is started with `--user 12345`."""

import pwd
from pathlib import Path

import pytest

from prony.catalog.install.pip_settings import home_folder
from prony.core import users as runas
from prony.core.errors import HostError


@pytest.fixture
def unknown(monkeypatch):
    def no_entry(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(runas.os, "geteuid", lambda: 12345)
    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    for name in ("HOME", "PRONY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_a_user_without_an_entry_has_its_number_as_name(unknown, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", "/cache")
    found = runas.resolve_user(None)
    assert (found.name, found.uid, found.cache, found.drop) == ("12345", 12345, Path("/cache"), False)


def test_a_user_without_a_home_gets_a_hint_what_to_set(unknown):
    with pytest.raises(HostError, match="has no home folder") as raised:
        runas.resolve_user(None)
    assert "PRONY_CACHE" in raised.value.hint


def test_a_home_that_is_not_known_is_a_folder_that_does_not_exist(unknown):
    assert not home_folder().exists()


@pytest.fixture
def known(monkeypatch):
    """An ordinary user with an entry, and none of the variables."""
    entry = pwd.struct_passwd(("ann", "x", 1000, 1000, "", "/home/ann", "/bin/sh"))
    monkeypatch.setattr(runas.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    for name in ("HOME", "PRONY_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("home", [None, "", "relative", "~"])
def test_without_a_home_the_cache_is_in_that_of_the_machines_entry(known, monkeypatch, home):
    if home is not None:
        monkeypatch.setenv("HOME", home)
    assert runas.resolve_user(None).cache == Path("/home/ann/.cache/prony")


def test_the_cache_is_where_the_first_of_the_variables_says(known, monkeypatch):
    found = []
    for name in ("HOME", "XDG_CACHE_HOME", "PRONY_CACHE"):
        monkeypatch.setenv(name, f"/{name}")
        found.append(runas.resolve_user(None).cache)
    assert [str(one) for one in found] == ["/HOME/.cache/prony", "/XDG_CACHE_HOME/prony", "/PRONY_CACHE"]


def test_a_relative_cache_is_one_of_the_folder_in_which_prony_was_started(known, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "ignored")
    assert runas.resolve_user(None).cache == Path("/home/ann/.cache/prony")
    monkeypatch.setenv("PRONY_CACHE", "own")
    assert runas.resolve_user(None).cache == tmp_path / "own"

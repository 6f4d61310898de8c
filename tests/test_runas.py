"""Users that a machine does not know, as in a container that is started with `--user 12345`."""

import pwd
from pathlib import Path

import pytest

from prony import runas
from prony.catalog.install.pip_settings import home_folder
from prony.errors import HostError


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

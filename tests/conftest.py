"""What all tests share: the option that rewrites golden files, and a study made of paper."""

import secrets

import pytest
from hypothesis import settings

import histograms

histograms.stand_in_for_the_engine()
# Other work on the machine must not fail a test.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected files of tests/golden"
    )


@pytest.fixture
def update_golden(request):
    return request.config.getoption("--update-golden")


@pytest.fixture
def world(monkeypatch):
    """A study with everything outside of it made of paper."""
    from commands import passable_folder
    from paper import World

    # Nothing is measured here: another Prony may do so meanwhile.
    monkeypatch.setattr("prony.host.claim._NAME", f"\0prony-test-{secrets.token_hex(8)}")
    with passable_folder() as folder:
        yield World(folder, monkeypatch)

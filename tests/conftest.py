"""What all tests share: the option that rewrites golden files, and a study made of paper."""

import os
import secrets

import pytest
from hypothesis import settings

import histograms

histograms.stand_in_for_the_engine()
# A test says itself what terminal it is about: the one in which the tests run, and what its user likes, must
# not change what is expected.
for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)
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
def own_claim(monkeypatch):
    """Where nothing is measured, a claim that is the test's own: another Prony may measure meanwhile."""
    monkeypatch.setattr("prony.host.claim._NAME", f"\0prony-test-{secrets.token_hex(8)}")


@pytest.fixture
def world(monkeypatch, own_claim):
    """A study with everything outside of it made of paper."""
    from commands import passable_folder
    from paper import World

    with passable_folder() as folder:
        yield World(folder, monkeypatch)

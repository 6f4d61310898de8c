"""What all tests share: the option that rewrites golden files, and a study made of paper."""

import gc
import os
import secrets
import signal
from pathlib import Path

import pytest
from hypothesis import settings

import histograms
from prony.catalog import DATA
from prony.catalog.schema import loader
from slow_layer import SlowLayer

# Thirteen thousand tests stay in memory, and each search for cycles would look at all of them: a quarter of
# the time of tests that read reports.
gc.disable()
histograms.stand_in_for_the_engine()


def once_a_file(load):
    """Return a function that reads a file of the built-in catalogue once: hundreds of tests take a third of a
    second each for it.
    """
    kept = {}

    def loaded(file, *kind):
        if not file.is_relative_to(DATA):
            return load(file, *kind)
        key = (file, file.stat().st_mtime_ns, *kind)
        if key not in kept:
            kept[key] = load(file, *kind)
        return kept[key]

    return loaded


loader._load_entry, loader.load_apps = once_a_file(loader._load_entry), once_a_file(loader.load_apps)
# A test says itself what terminal it is about: the one in which the tests run, and what its user likes, must
# not change what is expected.
for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)
# A shell has what it starts in the background ignore Ctrl-C, and so would do all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Other work on the machine must not fail a test.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected files of tests/golden"
    )
    parser.addoption("--go-on", metavar="FILE", type=Path, help="leave out what FILE says has passed")


def pytest_configure(config):
    if file := config.getoption("--go-on"):
        config.pluginmanager.register(SlowLayer(file))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Real servers first: they wait, which leaves the CPUs to what computes, and take longest."""
    items.sort(key=lambda item: item.get_closest_marker("servers") is None)


@pytest.fixture
def update_golden(request):
    return request.config.getoption("--update-golden")


@pytest.fixture
def own_claim(monkeypatch):
    """Where nothing is measured, a claim that is the test's own: another Prony may measure meanwhile."""
    monkeypatch.setattr("prony.machine.claim._NAME", f"\0prony-test-{secrets.token_hex(8)}")


@pytest.fixture
def world(monkeypatch, own_claim):
    """A study with everything outside of it made of paper."""
    from commands import passable_folder
    from paper import World

    with passable_folder() as folder:
        yield World(folder, monkeypatch)

"""What all tests share: the option that rewrites golden files, which tests may run beside others, and a study
made of paper.
"""

import os
import secrets
import signal
from pathlib import Path

import pytest
from hypothesis import settings

import histograms

histograms.stand_in_for_the_engine()
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

# What may run beside others, for it computes, or starts what nobody times or counts. All else runs alone.
TESTS = Path(__file__).parent
BESIDE = (
    *(
        "analysis",
        "archive",
        "catalog",
        "check",
        "diagnosis",
        "faces",
        "faults",
        "fuzz",
        "listing",
        "pages",
        "reading",
    ),
    *("report", "scripts", "sandbox/test_*_guest.py"),
    *("cli/test_compare.py", "cli/test_crafted_archives.py", "cli/test_hostile_*.py"),
    *("cli/test_odd_files.py", "cli/test_other_commands.py", "cli/test_outputs.py"),
    *("cli/test_resumed_fields.py", "cli/test_run_refusals.py", "cli/test_selftest_planted.py"),
    *("cli/test_report_sessions.py", "cli/test_studies.py"),
    *("servers/test_catalog_check.py", "servers/test_frontends.py", "servers/test_old_interpreter.py"),
    *("servers/test_nginx_wsgi.py", "servers/test_psgi.py", "servers/test_hostile_subject.py"),
    *("engine/fleet/test_clocks.py", "engine/fleet/test_liveness.py", "engine/fleet/test_address.py"),
    "engine/fleet/test_progress.py",
    *(
        "test_bench_*.py",
        "test_conversions.py",
        "test_data.py",
        "test_docs.py",
        "test_failing_system.py",
        "test_layers.py",
    ),
    *("test_names.py", "test_public.py", "test_recording.py", "test_study*.py", "test_units.py"),
    "test_words.py",
)


TOGETHER = {path for pattern in BESIDE for path in TESTS.glob(pattern)}


def pytest_collection_modifyitems(items):
    """Mark what may run beside others: `scripts/test` runs these in as many processes as there are CPUs."""
    for item in items:
        if not item.path.is_relative_to(TESTS) or not TOGETHER.isdisjoint((item.path, *item.path.parents)):
            item.add_marker(pytest.mark.beside)


def pytest_ignore_collect(collection_path):
    """Leave out what the marker would leave out: to import it takes a while."""
    return (collection_path in TOGETHER and os.environ.get("PRONY_TEST_PART") == "alone") or None


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

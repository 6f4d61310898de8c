"""The slow layer goes on where it stopped: what has passed is left out, what failed is not."""

import subprocess
import sys
from pathlib import Path

from slow_layer import LEFT

CONFTEST = """
import sys
from pathlib import Path

sys.path.insert(0, {tests!r})
import slow_layer


def pytest_configure(config):
    slow_layer.STARTS_FOR_S = {starts_for_s}
    config.pluginmanager.register(slow_layer.SlowLayer(Path("kept/ends")))
"""
TESTS = """
import pytest
from pathlib import Path


def test_a():
    pass


def test_b():
    pytest.skip("no such machine")


@pytest.fixture
def nothing_left():
    yield
    assert Path("cleared").exists()


def test_c(nothing_left):
    assert Path("mended").exists()
"""


def call(folder, starts_for_s):
    (folder / "conftest.py").write_text(
        CONFTEST.format(tests=str(Path(__file__).parent), starts_for_s=starts_for_s)
    )
    (folder / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir=.", "-q", "test_it.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("slow layer: ")]
    return done.returncode, line.removeprefix("slow layer: ").removesuffix(" (kept/ends)")


def test_a_call_ends_in_time_and_the_next_goes_on_until_nothing_is_left(tmp_path):
    assert call(tmp_path, 0) == (LEFT, "1 passed, 0 skipped, 2 left")
    assert call(tmp_path, 0) == (LEFT, "1 passed, 1 skipped, 1 left")
    # The last one fails again until it is mended, and leaves nothing.
    for mended in ("mended", "cleared"):
        assert call(tmp_path, 0) == (1, "1 passed, 1 skipped, 0 left")
        (tmp_path / mended).touch()
    assert call(tmp_path, 60) == (0, "2 passed, 1 skipped, 0 left")
    # Then none is chosen, which pytest says by 5.
    assert call(tmp_path, 60) == (5, "2 passed, 1 skipped, 0 left")

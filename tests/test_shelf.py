"""Apps as people have them: the first row is what their author runs, and servers that fit stand beside it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

SHELF = Path(__file__).resolve().parent / "shelf"
APPS = sorted(path.name for path in (SHELF / "apps").iterdir())
BROKEN = tomllib.loads((SHELF / "broken.toml").read_text())
# One of each way to start, in CI; the others are in the slow layer.
IN_CI = {"flask-procfile", "aiohttp-app", "falcon-uwsgi-yaml", "fastapi-monorepo", "rack-puma", "go-chi-flag"}


def judged(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, SHELF / "try", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                *([] if name in IN_CI else [pytest.mark.slow]),
                *([pytest.mark.skipif(not shutil.which("puma"), reason="no puma")] if "puma" in name else []),
            ],
        )
        for name in APPS
    ],
)
def test_the_first_row_is_the_authors_command(name: str) -> None:
    judged(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_copy_names_the_one_thing_to_do(name: str) -> None:
    judged("--broken", name)

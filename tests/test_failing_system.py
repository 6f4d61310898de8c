"""Whatever call of the system fails: one message with a reason, never a fault in Prony itself."""

import errno
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from commands import cache, folder, prony  # noqa: F401 - fixtures
from golden.build import study_two

PROGRAM = Path(__file__).parent / "failing_system.py"
# A disk that fails, is full or read-only, folders that are closed or gone, too many files.
ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.ENOENT, errno.EMFILE)
COMMANDS = (
    "report study.prony",
    "report study.prony --json",
    "report study.prony --csv made/tables",
    "compare study.prony study.prony",
    "servers gunicorn",
    "studies wsgi-servers",
    "engines",
    "doctor",
    "host",
    "env",
    "clean",
    "run --app shop:app --servers wsgiref --dry-run",
    "run embedded-servers --dry-run",
)
APP = "def app(environ, start_response):\n    start_response('200 OK', [])\n    return [b'hi']\n"


@pytest.fixture
def failing(prony):  # noqa: F811
    """Return what becomes of a command for each failure, a place that makes calls and an errno."""
    study_two(prony.folder / "study.prony")
    (prony.folder / "shop.py").write_text(APP)

    def run(command, failures):
        order = {"arguments": command.split(), "failures": failures}
        done = subprocess.run(
            [sys.executable, PROGRAM],
            input=json.dumps(order),
            cwd=prony.folder,
            env=prony.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def places_of(failing, commands):
    """Return each place that makes calls once, with a command that comes there."""
    found = {}
    for command in commands:
        (whole,) = failing(command, [(None, 0)])
        assert whole["status"] in (0, 1, 3), whole["err"]
        for place in whole["places"]:
            found.setdefault(place, command)
    return sorted(found.items())


def hold(failing, calls, draws):
    for command in dict.fromkeys(command for _, command in calls):
        failures = [(place, draws.choice(ERRORS)) for place, known in calls if known == command]
        for done in failing(command, failures):
            words = f"{command}: {done['place']}: {done['err']}"
            assert done["status"] in (0, 1, 2, 3), words
            assert "Traceback" not in done["err"], words
            assert done["status"] in (0, 1) or "error: " in done["err"], words


def test_a_call_of_the_system_that_fails_is_no_fault_in_prony_itself(failing):
    draws = random.Random(1)
    calls = places_of(failing, COMMANDS[2:3] + COMMANDS[4:5] + COMMANDS[-1:])
    hold(failing, draws.sample(calls, 12), draws)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_call_of_the_system_may_fail_with_a_reason(failing, seed):
    hold(failing, places_of(failing, COMMANDS), random.Random(seed))

"""Two Pronys that would measure on one machine at once: the second is refused, and the first goes on."""

import secrets
from dataclasses import replace

import pytest

from commands import BESIDE, ended, eventually
from prony.core.errors import ExitCode
from prony.model.trial import Ok
from servers.world import processes_of

pytestmark = pytest.mark.usefixtures("nothing_left")

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"hi"]
"""
STUDY = (
    "run",
    "--app",
    "mine:app",
    "--servers",
    "wsgiref",
    "--rate",
    "20",
    "--no-calibration",
    "--warmup",
    "100ms",
)
SECONDS = {
    "run": (*STUDY, "--duration", "300ms", "--repeats", "1", "--out", "second.prony"),
    "check": ("servers", "wsgiref", "--check"),
}


@pytest.fixture
def pair(prony, folder):
    """Prony with a claim that only these two want: other tests measure too. It shows its command."""
    (folder / "prony").write_text(BESIDE.replace("secrets.token_hex(8)", repr(secrets.token_hex(8))))
    return replace(prony, program=("-P", str(folder / "prony")))


def in_the_second_trial(prony, folder):
    """Start a study of two trials and return it when the server of the second one runs."""
    (folder / "mine.py").write_text(APP)
    process = prony.start(*STUDY, "--duration", "15s", "--repeats", "2", "--out", "first.prony")
    line = ""
    while "[1/2]" not in line:
        line = process.stderr.readline()
        assert line, process.communicate()
    assert eventually(lambda: any("serve.py" in command for _, command in processes_of(prony.cache)), 30)
    return process


def test_whoever_comes_second_is_told_who_measures_and_the_first_ends_undisturbed(pair, folder, trials):
    with ended(in_the_second_trial(pair, folder)) as first:
        seconds = {name: pair(*command) for name, command in SECONDS.items()}
        measured_on = first.poll() is None
        out, err = first.communicate(timeout=120)
    assert measured_on
    for name, second in seconds.items():
        assert second.status == ExitCode.COULD_NOT_MEASURE == 3, name
        (message,) = [line for line in second.err.splitlines() if line.startswith("error: ")]
        holder = f"another Prony is measuring on this machine: process {first.pid} of the user "
        assert message.startswith(f"error: {holder}"), name
        assert f"{folder}/prony run --app mine:app" in message
        assert "hint: two measurements at once disturb each other" in second.err
        assert second.out == "", name
    assert not (folder / "second.prony").exists()
    assert first.returncode == 0, err
    assert [trial.outcome for trial in trials(folder / "first.prony")] == [Ok(), Ok()]
    assert "Archive: first.prony" in out
    # It was the first that held the machine, and nothing else keeps the second from it.
    alone = pair(*SECONDS["run"], timeout_s=120)
    assert (alone.status, (folder / "second.prony").exists()) == (0, True), alone.err

"""Sizes of a terminal that none has."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from commands import Done
from golden.build import study_two
from prony.cli.main import COMMANDS, forget_odd_sizes


@pytest.mark.parametrize("size", ["0", "-1", "1000000000", "", "x", "\u0665"])
def test_a_size_that_no_terminal_has_is_not_believed(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", size)
    forget_odd_sizes()
    assert "COLUMNS" not in os.environ


def test_a_size_that_one_has_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    forget_odd_sizes()
    assert os.environ["COLUMNS"] == "200"


ODD = ("0", "-1", "1", "3", "1000000000", "", "x")
VARIABLES = ("COLUMNS", "LINES", "TERM", "NO_COLOR", "FORCE_COLOR", "PRONY_INSTALL")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study_two(tmp_path_factory.mktemp("sizes") / "a.prony")


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "words",
    [
        ("report", "ARCHIVE"),
        ("report", "ARCHIVE", "--full"),
        ("why", "ARCHIVE"),
        ("compare", "ARCHIVE", "ARCHIVE"),
        ("studies",),
        ("servers", "gunicorn"),
        ("run", "--help"),
        ("run", "--no-such-option"),
        ("load", "http://127.0.0.1:9/", "-n", "1"),
    ],
    ids=" ".join,
)
def test_whatever_a_terminal_is_said_to_be_a_command_ends_as_documented(
    said: Callable[..., Done],
    archive: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    value: str,
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, value)
    done = said(*(str(archive) if word == "ARCHIVE" else word for word in words))
    assert done.status in (0, 2, 3)
    assert "fault in Prony" not in done.err
    assert done.out + done.err


@pytest.mark.parametrize("command", COMMANDS)
def test_whatever_a_terminal_is_said_to_be_each_command_has_its_help(
    said: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for value in ODD:
        for name in VARIABLES:
            monkeypatch.setenv(name, value)
        shown = said(command, "--help")
        assert (shown.status, shown.err) == (0, "")
        assert "--help" in shown.out
        refused = said(command, "--no-such-option")
        assert refused.status == 2
        assert "--no-such-option" in refused.err


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (24, 2), (65535, 65535)], ids=str)
@pytest.mark.parametrize(
    "words", [("report", "ARCHIVE", "--full"), ("load", "http://127.0.0.1:9/", "-d", "1s")]
)
def test_on_a_terminal_of_any_size_a_command_ends_as_documented(
    archive: Path, words: tuple[str, ...], size: tuple[int, int]
) -> None:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    named = [str(archive) if word == "ARCHIVE" else word for word in words]
    plain = {name: value for name, value in os.environ.items() if name not in VARIABLES} | {"TERM": "xterm"}
    command = [sys.executable, "-m", "prony", *named]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=plain) as process:
        os.close(its)
        shown = bytearray()

        def read() -> None:
            with suppress(OSError):  # EIO: nobody has the other side any more
                while data := os.read(ours, 65536):
                    shown.extend(data)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            status = process.wait(60)
        finally:
            process.kill()
        reader.join(10)
    os.close(ours)
    assert status in (0, 3)
    assert b"fault in Prony" not in shown
    assert 0 < len(shown) < 2_000_000

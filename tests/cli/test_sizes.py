"""Sizes of a terminal that none has."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Done
from golden.build import study_two
from prony.cli.main import forget_odd_sizes


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

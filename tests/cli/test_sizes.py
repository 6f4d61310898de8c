"""Sizes of a terminal that none has."""

import os

import pytest

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

"""The tables of the pages on verdicts are what `bench/verdicts` makes: rows of each are made again, with
fewer studies.
"""

from functools import cache
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

import replayed
from benches import bench

CONCEPTS = Path(__file__).parent.parent.parent / "docs" / "concepts"
VERDICTS = bench("verdicts")
COUNT = 1000
# Studies of a cell, where they are fewer.
FEWER = {"paces": 100, "latency": 100, "stalls": 100, "open": 100, "stops": 100, "whole": 50, "noise": 20}
FEWER["found"] = 100
# Draws from the same trials: of 160 studies few differ.
FEWER["recorded"] = 160

# Rows that are quick to make; of those whose studies Prony itself judges, one by one, the smallest.
ROWS = {
    "size": [(4, 5), (8, 10)],
    "left": [(8, 10)],
    "power": [(8, 5), (2, 20)],
    "quiet": [(8, 10)],
    "looks": [(2,), (8,)],
    "stops": [(2, "2 %", "10 %")],
    "cells": [(5, 1), (10, 8)],
    "paces": [(5, 3)],
    "latency": [(5, 6)],
    "stalls": [(5, 3)],
    "open": [(5, 6)],
    "whole": [("open loop", 8, 5)],
    "noise": [(name,) for name in VERDICTS.NOISES],
    "found": [("step", "10 %")],
    "recorded": [("CPU a request", 10)],
    "sharing": [("two processes", "25 us")],
}


def cells(line):
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


@cache
def published(columns):
    """Return the cells of each row of the pages' table with these columns."""
    pages = ("verdicts", "steady-state", "claims")
    lines = [line for page in pages for line in (CONCEPTS / f"{page}.md").read_text().splitlines()]
    (head,) = [place for place, line in enumerate(lines) if line.startswith("|") and cells(line) == columns]
    return [cells(line) for line in takewhile(lambda line: line.startswith("|"), lines[head + 2 :])]


def row_of(name, key):
    """Return what the page says in a row."""
    rows = published(VERDICTS.TABLES[name].columns)
    (found,) = [row[len(key) :] for row in rows if row[: len(key)] == key]
    return found


def is_near(said, made, studies):
    """Return whether two cells differ by no more than chance: shares in percent of studies, or figures."""
    (one, _, unit), (other, _, other_unit) = said.partition(" "), made.partition(" ")
    if unit:
        return unit == other_unit and abs(float(one) / float(other) - 1) <= 0.15
    share = min(max(float(one), float(other), 1.0), 99.0) / 100
    error = (2 * share * (1 - share) / studies) ** 0.5
    return abs(float(one) - float(other)) <= 0.1 + 300 * error


def marks(name):
    """A study that Prony itself judges from its recordings takes a minute or more to simulate."""
    return [pytest.mark.slow] if name in ("open", "whole") else []


@pytest.mark.parametrize(
    ("name", "key"),
    [pytest.param(name, key, marks=marks(name)) for name, keys in ROWS.items() for key in keys],
)
def test_the_page_says_what_the_simulation_makes(name, key):
    said = row_of(name, tuple(map(str, key)))
    made = tuple(VERDICTS.TABLES[name].row(COUNT, *key))
    studies = FEWER.get(name, COUNT)
    assert not [both for both in zip(said, made, strict=True) if not is_near(*both, studies)]


@pytest.mark.parametrize("name", list(ROWS))
def test_the_page_has_every_row_of_the_table(name):
    table = VERDICTS.TABLES[name]
    keys = [tuple(map(str, key)) for key in table.keys(VERDICTS.SUBJECTS)]
    found = published(table.columns)
    assert [row[: len(key)] for row, key in zip(found, keys, strict=True)] == keys


def test_each_table_is_on_the_page():
    assert set(ROWS) == set(VERDICTS.TABLES)


def test_a_subject_that_noise_leaves_without_a_figure_is_counted():
    all_day, idle = np.full(200, 0.9), np.zeros(200)
    assert replayed.said(replayed.Noise(idle, all_day, all_day), 0.0, 1, 1)["without"] == 1
    assert replayed.said(replayed.Noise(idle, idle, idle), 0.0, 1, 1)["without"] == 0


def test_a_cell_that_is_wrong_is_found():
    assert is_near("4.3", "5.1", COUNT)
    assert not is_near("4.3", "8.3", COUNT)
    assert not is_near("12.0 blocks", "16.0 blocks", COUNT)

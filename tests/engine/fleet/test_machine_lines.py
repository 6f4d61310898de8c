"""The line of each machine of a fleet is read from two distributions alone: a thousand machines have many."""

from dataclasses import fields, is_dataclass
from typing import get_args, get_type_hints

import pytest

from prony.engine.fleet.engine import _NO_TIMES
from prony.model.recording import Distribution, GeneratorMachine, Recording


def holds(kind, wanted):
    """Whether values of a type may hold one of another type."""
    if kind is wanted:
        return True
    inner = get_type_hints(kind).values() if is_dataclass(kind) else get_args(kind)
    return any(holds(one, wanted) for one in inner)


@pytest.mark.parametrize("part", [one.name for one in fields(Recording)])
def test_each_part_with_histograms_is_left_out_or_short(part):
    has_times = holds(get_type_hints(Recording)[part], Distribution)
    assert (part in {"distributions", *_NO_TIMES}) == has_times


def test_a_line_has_no_times():
    assert not holds(GeneratorMachine, Distribution)

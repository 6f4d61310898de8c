"""The arithmetic of catalogue values."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.catalog.schema.expression import calculate, names_in


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("2*{cpus}+1", 5),
        ("2 * {cpus} + 1", 5),
        ("{cpus}*({workers}+1)", 8),
        ("10-2-3", 5),
        ("17//{cpus}//2", 4),
        ("((3))", 3),
    ],
)
def test_it_is_worked_out_as_usual(text, value):
    assert calculate(text, {"cpus": 2, "workers": 3}) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "2*",
        "*2",
        "2 2",
        "(2",
        "2)",
        "2**9",
        "2/1",
        "2%1",
        "1.5",
        "-1",
        "{cpus",
        "cpus",
        "{CPUS}",
        "{a.b}",
        "__import__('os')",
        "9999999999",
        "2;3",
        "lambda: 1",
        "{cpus}{cpus}",
        "0x10",
        "1_000",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        calculate(text, {"cpus": 2})


def test_a_division_by_zero_is_refused():
    with pytest.raises(ValueError, match="divides by zero"):
        calculate("1//({cpus}-2)", {"cpus": 2})


def test_an_endless_expression_is_refused():
    with pytest.raises(ValueError, match="at most 200"):
        calculate("(" * 100_000, {})


def test_the_names_are_told():
    assert names_in("{cpus}*({workers}+{cpus})") == {"cpus", "workers"}


@given(st.integers(0, 999), st.integers(0, 999), st.integers(1, 999))
def test_it_agrees_with_python(first, second, third):
    names = {"a": first, "b": second, "c": third}
    assert calculate("{a}-{b}*{c}+{a}//{c}", names) == first - second * third + first // third


@given(st.text(max_size=30))
def test_no_text_does_more_than_raise_value_error(text):
    with suppress(ValueError):
        calculate(text, {"cpus": 2})

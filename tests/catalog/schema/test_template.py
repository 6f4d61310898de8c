"""Placeholders, and which values may take their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.catalog.schema.expression import check_text_value, fill, placeholders, render


def test_every_placeholder_is_filled():
    assert fill("{host}:{port}", {"host": "127.0.0.1", "port": 80}) == "127.0.0.1:80"


def test_a_value_that_looks_like_a_placeholder_stays_as_it_is():
    assert fill("{a}{b}", {"a": "{b}", "b": "x"}) == "{b}x"


def test_the_names_are_told():
    assert placeholders("--bind={host}:{port}") == {"host", "port"}


@pytest.mark.parametrize("text", ["{", "}", "{}", "{0}", "{a!r}", "{a:x}", "{{a}}", "{A}"])
def test_a_brace_on_its_own_is_refused(text):
    with pytest.raises(ValueError, match="a brace that is not part of a placeholder"):
        placeholders(text)


@pytest.mark.parametrize("value", ["a;b", "a{b", "a\nb", "a\rb", "a\0b", "a\x1b[0m", "a\x7f", "a\u2028b"])
def test_a_value_that_could_start_a_line_or_a_statement_is_refused(value):
    assert check_text_value(value)


@pytest.mark.parametrize(
    "value", ["", "plain", "with space", "a:b", "/path/to", "ümlaut", "--looks-like-an-option"]
)
def test_other_values_may_be_filled_in(value):
    assert check_text_value(value) is None


@given(
    st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), st.text(max_size=20), min_size=1)
)
def test_filling_joins_the_values(values):
    assert fill("|".join(f"{{{name}}}" for name in values), values) == "|".join(values.values())


@pytest.mark.parametrize(
    "text", ["{{ 1/0 }}", "{{ port.nothing.more }}", "{{ port + 'x' }}", "{{ missing }}"]
)
def test_a_template_that_goes_wrong_says_so(text):
    with pytest.raises(ValueError, match=r"."):
        render(text, {"port": 1})


def test_a_template_reaches_nothing_but_its_values():
    with pytest.raises(ValueError, match=r"."):
        render("{{ ''.__class__.__mro__ }}", {})

"""Quantities are read and written without loss, and a bare number is never a time."""

from math import floor, inf, log10, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.core.units import (
    Scale,
    bytes_scale,
    duration_scale,
    format_bytes,
    format_duration,
    format_mean,
    format_percent,
    format_rate,
    nanoseconds,
    parse_bytes,
    parse_count,
    parse_duration,
    parse_percent,
    parse_rate,
    seconds,
    within,
)

DURATION_NS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "min": 60e9, "h": 3600e9}
SHOWN_NS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
SHOWN_BYTES = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
# Three significant digits: the last one is off by half at most.
THREE_DIGITS = 0.0051


def read_back(text, units):
    number, unit = text.split(" ")
    return float(number.replace(",", "")) * units[unit]


# --- durations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("250ms", 250_000_000),
        ("30s", 30_000_000_000),
        ("1m30s", 90_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1.5s", 1_500_000_000),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("2min", 120_000_000_000),
        ("0ms", 0),
        (" 5 s ", 5_000_000_000),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, expected_ns):
    assert parse_duration(text) == expected_ns


@pytest.mark.parametrize(
    "text",
    ["", "10", "s", "ten seconds", "-5s", "5 x", "5s!", "1.s", "5s,3ms", "1e3s", "٣s", "9" * 400 + "s"],
)
def test_what_is_no_duration_is_refused_with_the_text_and_an_example(text):
    with pytest.raises(
        ValueError, match="is not a duration; expected a number and a unit, such as `250ms`"
    ) as error:
        parse_duration(text)
    assert f"`{text}`" in str(error.value)


@given(st.integers(0, 10**6), st.sampled_from(sorted(DURATION_NS)))
def test_whole_numbers_of_every_unit_are_exact(number, unit):
    assert parse_duration(f"{number}{unit}") == round(number * DURATION_NS[unit])


@given(
    st.lists(st.tuples(st.integers(0, 10**4), st.sampled_from(sorted(DURATION_NS))), min_size=1, max_size=4)
)
def test_the_parts_of_a_duration_add_up(parts):
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_duration(text) == sum(parse_duration(f"{number}{unit}") for number, unit in parts)


@given(st.text(max_size=12))
def test_no_text_makes_a_duration_parser_fail_otherwise(text):
    try:
        assert parse_duration(text) >= 0
    except ValueError as error:
        assert "is not a duration" in str(error)


@given(st.integers(1, 10**13))
def test_a_formatted_duration_is_right_to_three_digits(value_ns):
    assert read_back(format_duration(value_ns), SHOWN_NS) == pytest.approx(value_ns, rel=THREE_DIGITS)


@given(st.integers(1, 9 * 10**11))
def test_a_formatted_duration_can_be_read_again(value_ns):
    text = format_duration(value_ns).replace(",", "")
    assert parse_duration(text) == pytest.approx(value_ns, rel=THREE_DIGITS, abs=0.5)


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 s"),
        (999_400, "999 µs"),
        (999_600, "1.00 ms"),
        (12_100_000, "12.1 ms"),
        (9_996_000, "10.0 ms"),
        (1_234_000_000_000, "1,234 s"),
    ],
)
def test_durations_are_written_with_three_digits_in_the_unit_that_fits(value_ns, text):
    assert format_duration(value_ns) == text


def test_seconds_are_for_arithmetic():
    assert seconds(2_500_000_000) == 2.5


# --- sizes and rates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("7", 7),
        ("13B", 13),
        ("1KiB", 1024),
        ("1k", 1024),
        ("1kB", 1000),
        ("512M", 512 * 1024**2),
        ("1.5 GiB", 3 * 512 * 1024**2),
    ],
)
def test_sizes_are_powers_of_1024_unless_written_with_a_small_k_and_b(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "B", "1 TiB", "-1", "1,000", "1kb/s", "9" * 400])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is not a size; expected a number and a unit"):
        parse_bytes(text)


@given(st.integers(1, 2**45))
def test_a_formatted_size_is_right_to_three_digits(value):
    assert read_back(format_bytes(value), SHOWN_BYTES) == pytest.approx(value, rel=THREE_DIGITS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[("550", 550), ("550/s", 550), ("90/m", 1.5), ("3600/h", 1), ("1e4", 10_000), ("0.5", 0.5)],
        *[("1k", 1000), ("2.5k", 2500), ("1M", 1_000_000), ("6k/m", 100), ("2 k / s", 2000)],
    ],
)
def test_a_rate_is_per_second_unless_it_says_otherwise(text, expected):
    assert parse_rate(text) == expected


@pytest.mark.parametrize(
    "text", ["", "0", "0/s", "-5", "fast", "5/d", "inf", "nan", "1e999", "1m", "1K", "k", "1kk"]
)
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(ValueError, match="is not a rate; expected requests per second"):
        parse_rate(text)


def test_rates_say_what_they_are():
    assert format_rate(550) == "550 /s"


# --- shares and columns -----------------------------------------------------------------------------------


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_neither_nothing_nor_everything_is_claimed_for_a_share_between(ratio):
    assert format_percent(ratio) not in ("0 %", "0.00 %", "100 %", "100.00 %")


def test_nothing_and_everything_are_said_plainly():
    assert (format_percent(0), format_percent(1)) == ("0 %", "100 %")


@given(st.lists(st.integers(1, 10**12), min_size=1), st.sampled_from([duration_scale, bytes_scale]))
def test_a_column_has_the_unit_of_its_typical_value(values, scale_of):
    size = scale_of(values).size
    assert size <= max(values)
    assert size == 1 or size <= sorted(values)[len(values) // 2] or len(values) % 2 == 0


def test_a_column_without_values_has_the_smallest_unit():
    assert duration_scale([0, 0]) == Scale(1.0, "ns")


@given(st.floats(1, 1e9), st.floats(1e-6, 1), st.integers(-1, 1))
def test_a_mean_and_its_ends_have_the_digits_of_half_of_its_interval(value, share, end):
    half_width, scale = value * share, Scale(1, "/s")
    mean, written = (format_mean(one, half_width, scale) for one in (value, value + end * half_width / 2))
    assert [one.partition(".")[2] == "" for one in (mean, written)] != [True, False]
    place = 10.0 ** (floor(log10(half_width)) - 1)
    assert float(mean.replace(",", "")) == pytest.approx(value, abs=max(0.51 * place, 0.00501 * value))


@pytest.mark.parametrize("half_width", [0.0, inf, nan])
def test_a_mean_without_a_width_has_its_usual_digits(half_width):
    assert format_mean(111_462, half_width, Scale(1, "/s")) == "111,462"
    assert within(111_462, half_width) == 111_462


@pytest.mark.parametrize(("text", "ratio"), [("0.1%", 0.001), (" 2 % ", 0.02), ("0%", 0), ("150%", 1.5)])
def test_a_percentage_is_a_number_and_its_sign(text, ratio):
    assert parse_percent(text) == pytest.approx(ratio)


@pytest.mark.parametrize("text", ["", "1", "%", "-1%", "1%%", "0.1 percent", "1e-3%"])
def test_what_is_no_percentage_is_refused_with_the_text_and_an_example(text):
    with pytest.raises(ValueError, match="is not a percentage; expected a number and `%`"):
        parse_percent(text)


@given(st.integers(0, 10**15 - 1))
def test_a_count_is_a_whole_number(number):
    assert parse_count(f" {number} ") == number


@pytest.mark.parametrize("text", ["", "1.5", "-1", "1,000", "٣", "1" * 16])
def test_what_is_no_count_is_refused_with_the_text_and_an_example(text):
    with pytest.raises(ValueError, match="is not a count; expected a whole number, such as `100`"):
        parse_count(text)


@given(st.integers(min_value=0, max_value=2**51))  # 26 days: a division and a product round
def test_nanoseconds_come_back_from_seconds(value_ns):
    assert nanoseconds(seconds(value_ns)) == value_ns

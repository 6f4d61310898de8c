"""The histogram that the reading side uses: the engine's own where it is built."""

from base64 import b64decode, b64encode
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

import histograms
from prony.figures.latency import decode_histogram

VALUES = st.lists(st.integers(1, 3_600_000_000_000), min_size=1, max_size=200)


def encode(values):
    return b64decode(histograms.encoded(values))


@given(VALUES)
def test_what_python_encodes_decodes_to_the_same_counts(values):
    histogram = decode_histogram(encode(values))
    assert len(histogram) == len(values)
    for quantile in (0.01, 0.5, 0.9, 1.0):
        assert histogram.value_at_quantile(quantile) == histograms.Histogram.decode(
            encode(values)
        ).value_at_quantile(quantile)


def merged(*histograms):
    first, *others = histograms
    for other in others:
        first.merge(other)
    return first


@given(VALUES, VALUES, VALUES)
def test_merging_is_associative(first, second, third):
    one, two, three = (partial(decode_histogram, encode(values)) for values in (first, second, third))
    left, right = merged(one(), two(), three()), merged(one(), merged(two(), three()))
    assert b64encode(left.encode()) == b64encode(right.encode())


@given(VALUES, st.integers(1, 3_600_000_000_000))
def test_count_below_counts_what_is_below_to_the_precision(values, bound):
    count = decode_histogram(encode(values)).count_below(bound)
    assert sum(value < bound * 0.999 for value in values) <= count <= sum(value < bound for value in values)

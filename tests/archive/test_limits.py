"""A generator's limit is read from the sentence of old Recordings and from the value of new ones alike."""

import pytest

from prony.archive.limits import decode_limit
from prony.model import Limit, LimitKind

SENTENCES = {
    "a worker thread was busy 95 % of the time": Limit(LimitKind.BUSY, share=0.95),
    "others kept a worker thread waiting for its CPU 2.1 % of the time": Limit(
        LimitKind.KEPT_WAITING, share=0.021
    ),
    "1 % of the requests went out more than 12.5 ms late": Limit(LimitKind.LATE, lag_ns=12_500_000),
    "run-queue wait 3 %": Limit(LimitKind.OTHER, reason="run-queue wait 3 %"),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_becomes_a_kind_and_its_number(sentence):
    found, expected = decode_limit({"limited": sentence}), SENTENCES[sentence]
    assert found is not None
    assert (found.kind, found.lag_ns, found.reason) == (expected.kind, expected.lag_ns, expected.reason)
    assert found.share == pytest.approx(expected.share)


@pytest.mark.parametrize("generator", [{}, {"limited": None}, {"limited": None, "limit": None}])
def test_no_limit_is_none(generator):
    assert decode_limit(generator) is None


def test_the_value_goes_before_the_sentence():
    limit = {"kind": "busy", "share": 0.9, "lag_ns": None}
    assert decode_limit({"limit": limit, "limited": "in other words"}) == Limit(LimitKind.BUSY, share=0.9)


@pytest.mark.parametrize("limit", ["busy", {"kind": "tired", "share": 1, "lag_ns": None}, {"kind": "busy"}])
def test_what_is_no_limit_is_refused(limit):
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode_limit({"limit": limit})

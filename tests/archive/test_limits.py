"""A generator's verdict is read from the sentence of old Recordings and from the values of new ones alike."""

import pytest

from prony.archive.limits import decode_verdict
from prony.model import GeneratorVerdict, Limit, Limited, LimitKind
from prony.model.shapes import ShapeError
from recordings import recording_of

SENTENCES = {
    "a worker thread was busy 95 % of the time": Limit(LimitKind.BUSY, share=0.95),
    "others kept a worker thread waiting for its CPU 2.1 % of the time": Limit(
        LimitKind.KEPT_WAITING, share=0.021
    ),
    "1 % of the requests went out more than 12.5 ms late": Limit(
        LimitKind.LATE, lag_ns=12_500_000, percentile=99
    ),
    "run-queue wait 3 %": Limit(LimitKind.OTHER, reason="run-queue wait 3 %"),
}


def generator(**told):
    return recording_of(generator=told).generator


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_becomes_a_suspicion_with_its_kind_and_number(sentence):
    verdict, expected = decode_verdict(generator(limited=sentence)), SENTENCES[sentence]
    (found,) = verdict.evidence
    assert verdict.limited is Limited.SUSPECT
    assert (found.kind, found.lag_ns, found.reason) == (expected.kind, expected.lag_ns, expected.reason)
    assert (found.share, found.percentile) == (pytest.approx(expected.share), expected.percentile)


@pytest.mark.parametrize(
    "told", [{}, {"limited": None}, {"limited": None, "limit": None}, {"limited": "no", "evidence": []}]
)
def test_no_limit_is_none(told):
    assert decode_verdict(generator(**told)) == GeneratorVerdict()


def test_the_value_goes_before_the_sentence():
    limit = {"kind": "busy", "share": 0.9, "lag_ns": None}
    found = decode_verdict(generator(limit=limit, limited="in other words"))
    assert found == GeneratorVerdict(Limited.SUSPECT, (Limit(LimitKind.BUSY, share=0.9),))


def test_a_new_verdict_has_all_its_evidence_the_strongest_first():
    evidence = [
        {"level": "yes", "kind": "throttled", "share": 0.5},
        {"level": "suspect", "kind": "late", "share": 0.3, "percentile": 99, "lag_ns": 70},
    ]
    found = decode_verdict(generator(limited="yes", evidence=evidence))
    assert found.strongest == Limit(LimitKind.THROTTLED, Limited.YES, share=0.5)
    assert found.evidence[1].numbers == {"share": 0.3, "percentile": 99, "lag_ns": 70}
    assert decode_verdict(generator(limited="yes")).strongest is None


@pytest.mark.parametrize(
    ("limit", "place"),
    [
        ("busy", "generator.limit: expected an object"),
        ({"kind": "tired", "share": 1, "lag_ns": None}, "generator.limit.kind: expected one of in_flight"),
        ({"kind": "busy"}, "generator.limit.share: expected a number, as the kind is busy"),
        ({"kind": "late", "share": 0.1}, "generator.limit.lag_ns: expected a number, as the kind is late"),
    ],
)
def test_what_is_no_limit_is_refused(limit, place):
    with pytest.raises(ShapeError) as error:
        generator(limit=limit)
    assert place in str(error.value)


def test_a_sentence_with_a_number_without_end_has_no_number():
    sentence = f"1 % of the requests went out more than {'9' * 400} ms late"
    assert decode_verdict(generator(limited=sentence)).strongest == Limit(LimitKind.OTHER, reason=sentence)

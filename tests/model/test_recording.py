"""The Recording at its border: what was recorded reads, and writes as it was; nothing else passes."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import build
from golden.generators import checked_study, generators_study
from golden.studies import count_study, grid_study
from prony.archive import open_archive
from prony.core.errors import ArchiveError
from prony.figures.account import (
    ClassKind,
    RequestClass,
    answered,
    classes,
    counts_by_class,
    failed,
    kind_of,
    sent_and_failed,
)
from prony.figures.summary import figures
from prony.model.json_codec import ShapeError, encode
from prony.model.limit import GeneratorVerdict, Limit, Limited, LimitKind
from prony.model.recording import Account, CarriedIn, Distribution, Recording, decode_recording
from prony.reading.load import read_load
from prony.report.formats.as_json import document_json
from prony.report.load import load_document
from prony.report.words import ending_words
from recordings import IDLE, recording_of, with_parts

STUDIES = (*(build.study_two, build.closed_study, count_study, grid_study, generators_study, checked_study),)
LOAD = build.Workload(build.OpenLoop(100), build.DurationStop(2 * build.SECOND))
WIRE = build.wire(LOAD, [1_000_000 + k for k in range(200)], {"reset": 3}, (), None, ())


# --- there and back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.__name__)
def test_every_recording_of_an_archive_is_written_as_it_was_read(tmp_path, study):
    with open_archive(study(tmp_path / "a.prony")) as archive:
        found = [record.trial.recording for record in archive.trials() if record.trial.recording]
    assert found
    for recording in found:
        assert decode_recording(json.loads(json.dumps(encode(recording)))) == recording


def test_what_the_engine_tells_is_written_as_it_came():
    from prony import _engine
    from prony.model.address import Address
    from prony.model.workload import ClosedLoop, EngineChoice, OpenLoop
    from prony.plan.engine_spec import to_spec

    with _engine.ReferenceServer(json.dumps({"port": 0})) as server:
        for loop in (ClosedLoop(2), OpenLoop(100.0, connections=2)):
            load = build.Workload(loop, build.DurationStop(build.SECOND // 5))
            spec = to_spec(load, Address("127.0.0.1", server.port), EngineChoice())
            recorded = json.loads(_engine.run(json.dumps(spec)))
            assert encode(decode_recording(recorded)) == recorded
            assert decode_recording(recorded).spec.workload == load


TEXTS = st.text(max_size=8)
WHOLE = st.integers(0, 2**63 - 1)
PLAIN = {
    int: WHOLE,
    float: st.floats(-1e9, 1e9) | st.integers(0, 10**9),
    bool: st.booleans(),
    str: TEXTS,
    bytes: st.binary(max_size=8),
    type(None): st.none(),
    # A fact of a machine's fingerprint: any value of JSON.
    object: TEXTS | WHOLE | st.none() | st.lists(TEXTS, max_size=2),
}
FULL = st.builds(Distribution, st.integers(1, 9), WHOLE, WHOLE, WHOLE, st.binary(max_size=8))
_NUMBERS = [one for one in fields(Limit) if one.name not in ("kind", "level", "reason")]
EMPTY = Distribution(0, None, None, None, None)


def values(kind):
    """Return a strategy for values of a type, as a Recording's fields have them."""
    inner = get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if kind is Distribution:
        return FULL | st.just(EMPTY)
    if kind is Account:
        others = st.dictionaries(st.sampled_from(OTHERS), WHOLE | st.none())
        carried = st.none() | values(CarriedIn)
        return st.builds(Account, WHOLE, WHOLE, st.dictionaries(TEXTS, WHOLE), others, carried)
    if kind is Limit:
        numbers = {one.name: values(get_type_hints(Limit)[one.name].__args__[0]) for one in _NUMBERS}
        return st.builds(Limit, st.sampled_from(LimitKind), st.sampled_from(Limited), **numbers)
    if get_origin(kind) is tuple:
        several = inner[-1] is ...
        return (
            st.lists(values(inner[0]), max_size=2).map(tuple) if several else st.tuples(*map(values, inner))
        )
    if get_origin(kind) is Mapping:
        return st.dictionaries(TEXTS, values(inner[1]), max_size=2)
    if inner:
        return st.one_of(*map(values, inner))
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{one.name: _of_field(one.name, hints[one.name]) for one in fields(kind)})
    return st.sampled_from(kind)


def _of_field(name, kind):
    # Paths, statuses and groups are sums: tests/model/test_recording_paths.py and the like.
    apart = {"mix": st.none(), "paths": st.just(()), "statuses": st.just({})}
    if name == "groups" and get_origin(kind) is tuple:
        return st.just(())
    return apart[name] if name in apart else values(kind)


OTHERS = [name for name in classes() if name not in ("ok", "bad_status")]
ANY_RECORDING = values(Recording)


@given(ANY_RECORDING)
def test_any_recording_reads_as_it_was_written(recording):
    written = json.loads(json.dumps(encode(recording)))
    assert decode_recording(written) == recording
    assert encode(decode_recording(written)) == written


def test_a_key_that_a_later_version_added_is_left_out():
    assert decode_recording({**IDLE, "later": 1, "queue": {"later": 2}}) == recording_of()


def test_a_whole_number_stays_one_where_any_number_may_stand():
    assert json.dumps(encode(recording_of(generator={"spin_share": 0}).generator.spin_share)) == "0"


# --- the generator's verdict ------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [{}, {"limited": None}, {"limited": "no", "evidence": []}])
def test_a_generator_that_says_nothing_of_itself_was_not_the_limit(told):
    assert recording_of(generator=told).generator.verdict == GeneratorVerdict()


def test_a_verdict_has_all_its_evidence_the_strongest_first():
    evidence = [
        {"level": "yes", "kind": "throttled", "share": 0.5},
        {"level": "suspect", "kind": "late", "share": 0.3, "percentile": 99, "lag_ns": 70},
    ]
    found = recording_of(generator={"limited": "yes", "evidence": evidence}).generator.verdict
    assert found.strongest == Limit(LimitKind.THROTTLED, Limited.YES, share=0.5)
    assert found.evidence[1].numbers == {"share": 0.3, "percentile": 99, "lag_ns": 70}


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"loop": "round"}, 'recording.loop: expected one of closed, open, found "round"'),
        ({"account": {"ok": "x"}}, "recording.account.scheduled: expected a whole number of at least 0"),
        ({"account": {**IDLE["account"], "ok": "x"}}, 'ok: expected a whole number of at least 0, found "x"'),
        ({"account": {**IDLE["account"], "reset": -1}}, "recording.account.reset: expected a whole number"),
        ({"account": {**IDLE["account"], "ok": True}}, "found true"),
        ({"account": {**IDLE["account"], "ok": 10**400}}, "found a larger one"),
        ({"window": []}, "recording.window: expected an object, found an array"),
        (
            {"series": [{}]},
            "series[0].second: expected a whole number of at least 0, found nothing",
        ),
        ({"little": {"residual": float("nan")}}, "recording.little.residual: expected a number, found NaN"),
        ({"generator": {"limited": "slow"}}, "generator.limited: expected one of no, suspect, yes"),
        ({"generator": {"evidence": ["busy"]}}, "generator.evidence[0]: expected an object"),
        ({"generator": {"evidence": [{"kind": "tired"}]}}, "evidence[0].kind: expected one of in_flight"),
        (
            {"generator": {"evidence": [{"kind": "busy"}]}},
            "generator.evidence[0].share: expected a number, as the kind is busy",
        ),
        (
            {"generator": {"evidence": [{"kind": "late", "share": 0.1}]}},
            "generator.evidence[0].lag_ns: expected a number, as the kind is late",
        ),
        (
            {"distributions": {"connect": {"count": 1}}},
            "distributions.connect.min_ns: expected a value",
        ),
        (
            {"distributions": {"connect": {"count": 0, "max_ns": 2**70}}},
            "distributions.connect.max_ns: expected a time of less than 292 years",
        ),
        (
            {"distributions": {"connect": {"count": 0, "histogram": "!"}}},
            'recording.distributions.connect.histogram: expected base64, found "!"',
        ),
    ],
)
def test_another_shape_is_refused_with_its_place(parts, words):
    with pytest.raises(ShapeError) as error:
        decode_recording({**IDLE, **parts})
    assert words in str(error.value)


WRONG = st.sampled_from([None, -1, 10**400, 1e308, "x", True, [], {}, [[]], {"count": 1}, 2**70, 0])


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


PLACES = [path for path in places(WIRE) if path and path[-1] != "histogram"]


def put(place, path, value):
    """Put a value at a path; nothing, where an earlier change has taken the path away."""
    for key in path[:-1]:
        if not has(place, key):
            return
        place = place[key]
    if has(place, path[-1]):
        place[path[-1]] = value


def has(place, key):
    return (isinstance(place, dict) and key in place) or (
        isinstance(place, list) and isinstance(key, int) and key < len(place)
    )


@given(st.lists(st.tuples(st.sampled_from(PLACES), WRONG), min_size=1, max_size=2))
def test_what_passes_the_border_can_be_read_to_the_end(changes):
    changed = deepcopy(WIRE)
    for path, wrong in changes:
        put(changed, path, deepcopy(wrong))
    try:
        recording = decode_recording(changed)
    except ShapeError as error:
        assert str(error).startswith("recording.")
        return
    figures(replace(TRIAL, recording=recording))
    load_document(read_load(recording))
    json.dumps(document_json(read_load(recording)), allow_nan=False)


TRIAL = build.trial(build.Cell(1, build.subject("a+b"), LOAD), 0, 0, [1_000_000] * 200)


def test_an_archive_says_which_trials_recording_it_cannot_read_and_where(tmp_path):
    path = build.closed_study(tmp_path / "a.prony", 1)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE recording SET recording_json = json_set(recording_json, '$.account.ok', 'x')"
        )
    words = r"trial 1 holds a Recording that cannot be read: recording\.account\.ok: expected a whole number"
    with open_archive(path) as archive, pytest.raises(ArchiveError, match=words):
        next(archive.trials())


def test_a_histogram_that_cannot_be_decoded_is_an_error_of_the_archive():
    spoilt = with_parts(recording_of(), distributions={"ok_service": {**TIMES, "histogram": "AAAA"}})
    with pytest.raises(ArchiveError, match="a histogram in the archive cannot be read"):
        document_json(read_load(spoilt))


TIMES = {"count": 1, "min_ns": 1, "max_ns": 1, "sum_ns": 1}


# --- the classes of the account ---------------------------------------------------------------------------


def test_each_class_has_words():
    unsaid = [name for name in classes() if ending_words(RequestClass(name)) == name]
    assert unsaid == []


def test_each_class_is_answered_failed_or_unanswered_and_counted_once():
    for name, kind in classes().items():
        account = Account(1, int(name == "ok"), {"500": 1} if name == "bad_status" else {}, {})
        if name not in ("ok", "bad_status"):
            account = replace(account, others={name: 1})
        assert sum(counts_by_class(account).values()) == 1
        assert answered(account) == (kind in (ClassKind.OK, ClassKind.OTHER_REPLY))
        assert failed(account) == (kind not in (ClassKind.OK, ClassKind.UNANSWERED))
        assert sent_and_failed(account) == (kind in (ClassKind.OTHER_REPLY, ClassKind.BROKEN))


def test_a_class_of_a_later_version_is_a_failure_that_nobody_specified():
    account = Account(3, 1, {}, {"quic_refused": 2})
    assert kind_of("quic_refused") is ClassKind.UNSPECIFIED
    assert (counts_by_class(account)["quic_refused"], failed(account)) == (2, 2)

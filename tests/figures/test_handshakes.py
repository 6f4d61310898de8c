"""Handshakes of TLS: their times and numbers, and what was agreed on."""

import pytest

from golden.build import distribution
from prony.core.metrics import METRICS
from prony.figures.handshakes import agreed_by_all, agreed_in, handshake_metrics
from prony.figures.missing import Missing
from recordings import recording_of

MS = 1_000_000
NONE = {"none": 1}


def with_tls(full=(), resumed=(), failed=0, **agreed):
    found = {"protocols": NONE, "ciphers": NONE, "groups": NONE, "keys": NONE, "alpn": NONE, **agreed}
    return recording_of(
        tls={"full": distribution(full), "resumed": distribution(resumed), "failed": failed, **found}
    )


def test_full_and_resumed_handshakes_are_apart():
    found = handshake_metrics(with_tls([2 * MS] * 30, [MS] * 20, failed=3))
    assert (found["handshakes_full"], found["handshakes_resumed"], found["handshakes_failed"]) == (30, 20, 3)
    assert found["handshake_full_p50"] == pytest.approx(2 * MS, rel=0.01)
    assert found["handshake_resumed_mean"] == pytest.approx(MS, rel=0.01)


def test_a_percentile_of_few_handshakes_is_missing_and_their_mean_is_not():
    found = handshake_metrics(with_tls([2 * MS] * 10))
    assert found["handshake_full_p50"] == Missing("fewer than 10 handshakes lie above it")
    assert found["handshake_full_mean"] == 2 * MS
    assert found["handshake_resumed_max"] == Missing("there was no such handshake")


def test_every_metric_of_handshakes_is_there_with_and_without_tls():
    names = {name for name in METRICS if name.startswith("handshake")}
    assert set(handshake_metrics(with_tls([MS]))) == names
    plain = handshake_metrics(recording_of())
    assert plain == dict.fromkeys(names, Missing("there was no TLS"))


def test_a_generator_that_does_not_measure_them_says_so_and_not_that_there_was_no_tls():
    target = {"host": "127.0.0.1", "port": 1, "tls": {"verify": True}}
    spec = {"target": target, "workload": None, "threads": 1, "cpus": None, "pacing": None}
    found = handshake_metrics(recording_of(spec=spec))
    assert set(found.values()) == {Missing("not recorded by this generator")}
    agreed = agreed_in(recording_of(spec=spec))
    assert agreed
    assert (agreed.protocols, agreed.resumption) == ((), True)


def test_what_was_not_agreed_on_has_no_name():
    found = agreed_in(with_tls(protocols={"TLS 1.3": 2}, alpn=NONE))
    assert found
    assert (found.protocols, found.alpn, found.resumption) == (("TLS 1.3",), (), None)
    assert agreed_in(recording_of()) is None


def test_several_trials_agree_together():
    one, two = (agreed_in(with_tls(ciphers={name: 1})) for name in ("b", "a"))
    both = agreed_by_all([one, None, two])
    assert both
    assert both.ciphers == ("a", "b")
    assert agreed_by_all([None]) is None

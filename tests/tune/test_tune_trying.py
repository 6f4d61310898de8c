"""One setting tried: what is confirmed, what is not, and what more blocks may decide."""

import json

import pytest

from prony.cli.trying import lost_after, worsened
from prony.report.formats.as_json import document_json
from prony.report.formats.terminal import TerminalReporter
from prony.report.tune import TryReading, TryVerdict, Worsened, try_document, try_verdict
from prony.tune.race import gain_of, log_ratios_by_block
from prony.tune.reading import RatioChange, change_of_gain

SLOWER = Worsened("service_all_p99", RatioChange(0.4, 0.3, 0.5))


def tried(ratios, following="", lost=None, worse=()):
    gain = gain_of(ratios)
    return TryReading(
        subject="gunicorn+shop",
        load="64 connections, GET /",
        setting="gunicorn.threads",
        before="4",
        after="8",
        verdict=try_verdict(gain),
        metric="ok_per_s",
        change=change_of_gain(gain, is_higher=True) if gain else None,
        pairs=gain.blocks if gain else 0,
        lost=lost,
        worse=worse,
        following=following,
    )


def report(found):
    return try_document(found), json.loads(json.dumps(document_json(found), allow_nan=False))


OPEN = tried([0.3, -0.3, 0.2, -0.1, 0.1], "prony why x --try --pairs 16", worse=(SLOWER,))


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.10, 0.11, 0.12, 0.10, 0.11], TryVerdict.CONFIRMED),
        ([0.00, 0.01, -0.01, 0.00, 0.01], TryVerdict.REFUTED),
        ([0.005, 0.006, 0.004, 0.005, 0.006], TryVerdict.REFUTED),
        ([0.04, 0.05, 0.02, 0.04, 0.05], TryVerdict.CONFIRMED),
        ([0.04, 0.05, 0.01, 0.04, 0.06], TryVerdict.OPEN),
        ([-0.2, -0.21, -0.19, -0.2, -0.2], TryVerdict.REFUTED),
        ([0.3, -0.3, 0.2, -0.1, 0.1], TryVerdict.OPEN),
        ([0.3], TryVerdict.OPEN),
        ([], TryVerdict.OPEN),
    ],
)
def test_the_whole_interval_decides(ratios, verdict):
    assert try_verdict(gain_of(ratios)) is verdict


def test_it_is_said_with_its_gain_and_its_interval(capsys):
    TerminalReporter().write_report(try_document(tried([0.10, 0.11, 0.12, 0.10, 0.11])))
    words = " ".join(capsys.readouterr().out.split())
    assert (
        "Confirmed: gunicorn.threads 4 to 8: requests/s +11.4 % (95 % interval +10.3 % to +12.6 %)" in words
    )
    assert "in 5 fresh pairs of trials, under 64 connections, GET /." in words


def test_what_became_worse_is_said_with_the_verdict(capsys):
    memory = Worsened("pss_end", RatioChange(2.1, 2.0, 2.2))
    found = tried([0.10, 0.11, 0.12, 0.10, 0.11], worse=(SLOWER, memory))
    TerminalReporter().write_report(try_document(found))
    words = " ".join(capsys.readouterr().out.split())
    assert "Confirmed, at a cost: gunicorn.threads 4 to 8: requests/s +11.4 %" in words
    assert (
        "Worse after it: p99 +40.0 % (95 % interval +30.0 % to +50.0 %); "
        "memory x 3.1 (95 % interval x 3 to x 3.2)." in words
    )


def test_only_what_is_shown_to_be_worse_by_two_per_cent_is_worse():
    def rows(**changed):
        wobble = (0.99, 1.0, 1.01, 1.0, 0.99, 1.01)
        usual = {"ok_per_s": 100.0, "service_all_p99": 5e7, "pss_end": 1e8, **changed}
        return {k: {name: value * by for name, value in usual.items()} for k, by in enumerate(wobble)}

    assert worsened("ok_per_s", rows(), rows(ok_per_s=50.0, service_all_p99=5.05e7, pss_end=9e7)) == ()
    slower, larger = worsened("ok_per_s", rows(), rows(service_all_p99=6e7, pss_end=1.5e8))
    assert (slower.metric, larger.metric) == ("service_all_p99", "pss_end")
    assert (slower.change.value, larger.change.low) == (pytest.approx(0.2), pytest.approx(0.5))
    (less,) = worsened("pss_end", rows(), rows(ok_per_s=60.0, pss_end=5e7))
    assert (less.metric, less.change.value) == ("ok_per_s", pytest.approx(-0.4))


def test_what_loses_requests_after_the_change_is_said(capsys):
    TerminalReporter().write_report(try_document(tried([0.10, 0.11, 0.12, 0.10, 0.11], lost=0.05)))
    words = " ".join(capsys.readouterr().out.split())
    assert "in 5 fresh pairs of trials; 5 % of the requests fail, under" in words


def test_a_change_after_which_more_requests_fail_is_not_confirmed():
    good, bad = ({k: {"error_ratio": share} for k in range(5)} for share in (0.0, 0.05))
    assert lost_after(good, good) is None
    assert lost_after(bad, bad) is None
    assert lost_after(good, bad) == pytest.approx(0.05)
    assert lost_after(good, {**good, 5: {"error_ratio": 1.0}}) == pytest.approx(1 / 6)


def test_what_is_open_names_the_command_that_may_decide_it(capsys):
    TerminalReporter().write_report(try_document(OPEN))
    out = capsys.readouterr().out
    assert out.startswith("gunicorn+shop: gunicorn.threads")
    assert "Cannot tell:" in out
    assert "prony why x --try --pairs 16" in out


def test_only_blocks_of_both_count_and_less_is_better_where_it_is_a_cost():
    before, after = {0: {"cpu": 2.0}, 1: {"cpu": 2.0}, 2: {}}, {0: {"cpu": 1.0}, 2: {"cpu": 1.0}}
    assert log_ratios_by_block("cpu", before, after, is_higher=False) == [pytest.approx(0.693, abs=1e-3)]

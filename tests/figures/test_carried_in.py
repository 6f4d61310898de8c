"""Requests that the window found open: a class of the account that every figure of all requests includes."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from golden import build
from prony.figures.accept_queue import Starvation, starvation
from prony.figures.account import rates_of, tally, together
from prony.figures.latency import latency_summaries
from prony.figures.missing import Missing
from prony.figures.summary import figures, summarise_cell
from prony.figures.trial_metrics import trial_metrics
from prony.model.plan import Cell
from prony.model.recording import CarriedIn
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.reading.failures import failed_by_class
from prony.reading.load import read_load
from prony.report.formats.as_json import document_json
from prony.report.formats.terminal import TerminalReporter
from prony.report.load import load_document
from prony.report.tables import Place, failures_table
from prony.report.text import text
from recordings import with_parts

MS = 1_000_000
CLOSED = Cell(1, build.subject("silent+hello"), Workload(ClosedLoop(50), DurationStop(2 * build.SECOND)))
SILENT = CarriedIn(50, 46, {}, {"timed_out": 4})


def recording(found, **times):
    """2,000 valid replies of 1 to 3 ms in the window, and what it found open."""
    own = build.trial(CLOSED, 0, 0, [MS + k * 1000 for k in range(2000)]).recording
    changed = with_parts(own, distributions=times) if times else own
    return replace(changed, account=replace(own.account, carried_in=found))


def trial(found, **times):
    return replace(build.trial(CLOSED, 0, 0, []), recording=recording(found, **times))


def page_of(recording):
    out = io.StringIO()
    console = Console(file=out, width=200, highlight=False)
    TerminalReporter(console).write(load_document(read_load(recording)))
    return out.getvalue()


def test_the_share_of_errors_and_their_rate_are_of_the_same_requests():
    found = rates_of(recording(CarriedIn(10_000, 9000, {"bad_status 503": 134}, {"timed_out": 866})))
    assert found["error_ratio"] == pytest.approx(1000 / 12_000)
    assert found["success_ratio"] == pytest.approx(11_000 / 12_000)
    assert found["error_per_s"] * 2 == pytest.approx(1000)


def test_what_was_lost_before_the_window_makes_a_subject_unqualified():
    assert summarise_cell(CLOSED, [figures(trial(SILENT))]).unqualified == "its requests fail"
    answered = CarriedIn(50, 50, {}, {})
    assert summarise_cell(CLOSED, [figures(trial(answered))]).unqualified is None


@pytest.mark.parametrize(
    ("silent", "found"), [(0, None), (1, None), (2, Starvation(10, 8)), (9, Starvation(10, 1))]
)
def test_a_connection_whose_only_reply_is_to_a_carried_in_request_is_served_and_one_without_any_is_not(
    silent, found
):
    # As the engine counts (crates/prony-engine/tests/carried_in.rs): replies since the opening, whatever to.
    replies = {"connections": 10, "without_reply": silent, "min": int(not silent), "max": 200}
    own = recording(CarriedIn(10, 10 - silent, {}, {"timed_out": silent} if silent else {}))
    assert starvation(with_parts(own, connections={"answered": replies})) == found


def test_latencies_of_all_requests_hold_what_was_carried_in_and_those_of_valid_replies_do_not():
    carried, ages = build.distribution([40 * MS] * 46), build.distribution([5000 * MS] * 4)
    found = latency_summaries(recording(SILENT, carried_in_service=carried, censored_service=ages))
    ok, everything = found["ok", "service"], found["all", "service"]
    assert (ok.count, everything.count) == (2000, 2050)
    assert ok.max_ns < 3 * MS
    assert (everything.max_ns, everything.censored_from) == (5000 * MS, pytest.approx(100 * 2046 / 2050))
    assert everything.percentiles["99"] == pytest.approx(40 * MS, rel=0.001)


def test_what_was_carried_in_and_failed_is_infinite_in_a_closed_loop_whether_it_was_sent_or_not():
    broken = CarriedIn(3, 0, {"reset": 1, "bad_status 503": 1, "connect_refused": 1}, {})
    found = latency_summaries(recording(broken))
    assert found["all", "service"].count == 2003
    assert found["all", "service"].infinite_from == pytest.approx(100 * 2000 / 2003)


def test_a_generator_that_does_not_report_them_has_no_zero_but_a_reason():
    found = trial_metrics(trial(None))
    assert found["carried_in"] == Missing("not recorded by this generator")
    known = trial_metrics(trial(SILENT))
    assert (known["carried_in"], known["carried_in_lost"]) == (50, 4)


def test_tallies_add_up_over_trials_and_stay_unknown_where_none_is_known():
    known, unknown = tally(recording(SILENT).account), tally(recording(None).account)
    assert together([unknown, unknown]).carried_in is None
    both = together([known, unknown])
    assert (both.requests, both.ok, both.lost) == (4050, 4046, 4)
    assert both.by_key == {"scheduled": 4000, "carried_in": 50, "ok": 4046, "timed_out": 4}


def test_the_text_of_a_load_says_how_they_ended():
    page = page_of(recording(SILENT))
    assert "99.80 % of all requests answered so" in page
    how = "46 answered as expected, 0 failed, 4 unanswered"
    assert f"50 of these requests were open when the window opened: {how}" in page


def test_a_load_of_which_nothing_was_begun_in_the_window_has_not_sent_nothing():
    silent = build.trial(CLOSED, 0, 0, []).recording
    silent = replace(
        silent, account=replace(silent.account, carried_in=CarriedIn(50, 0, {}, {"timed_out": 50}))
    )
    page = page_of(silent)
    assert "0 % of all requests answered so" in page
    assert "Nothing was sent" not in page
    assert document_json(read_load(silent))["carried_in"]["unanswered"] == 50


@pytest.mark.parametrize(
    ("found", "expected"), [(SILENT, [["10", "4"]]), (CarriedIn(50, 50, {}, {}), [["6"]])]
)
def test_the_table_of_failures_has_what_was_carried_in_apart_where_some_of_it_failed(found, expected):
    own = trial(found)
    account = own.recording.account
    others = {**account.others, "timed_out": 6}
    lost = replace(account, scheduled=account.scheduled + 6, others=others)
    cell = summarise_cell(CLOSED, [figures(replace(own, recording=replace(own.recording, account=lost)))])
    (failures,) = failed_by_class(cell)
    table = failures_table([(text(""), Place(cell, ""))])
    shown = [k for k, column in enumerate(table.columns) if str(column.title) in ("requests", "carried in")]
    assert [[str(row[k].text) for k in shown] for row in table.rows] == expected
    assert failures.carried_in == (4 if found is SILENT else 0)

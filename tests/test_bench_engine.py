"""What `bench/engine` refuses, and how it sums up."""

import sys
from dataclasses import replace

import pytest

from benches import BENCH

sys.path.insert(0, str(BENCH))

from peers import programs, results, runs
from peers.cells import CELLS, Cell, chosen
from peers.own import engine
from peers.servers import Counts

CELL = Cell("closed", "Closed loop", connections=10)
QUIET = runs.Run(10.0, 50_000.0, 0.01)


def edge(requests, accepted, at_s=0.0):
    return runs.Edge(Counts(requests, accepted), 0.0, at_s, 0.0, 0.0)


def refused(cell, begin, end):
    with pytest.raises(programs.RunError) as caught:
        runs.check_window(cell, Counts(0, 1), begin, end)
    return str(caught.value)


def test_a_window_with_all_connections_open_and_kept_counts():
    runs.check_window(CELL, Counts(0, 1), edge(500, 11), edge(10_500, 11, 1.0))


def test_a_window_without_a_request_is_refused():
    assert refused(CELL, edge(500, 11), edge(500, 11, 1.0)) == "no request reached the server in the window"


def test_connections_that_were_not_open_in_time_are_told():
    assert refused(CELL, edge(5, 6), edge(10_000, 11, 1.0)) == "5 of 10 connections were open in time"


def test_connections_that_are_opened_anew_are_told():
    told = refused(CELL, edge(500, 11), edge(10_500, 1_011, 1.0))
    assert told == "opens connections anew: 1,000 for 10,000 requests"


def test_connections_that_are_kept_where_each_request_should_have_one_are_told():
    cell = replace(CELL, keep_alive=False)
    assert refused(cell, edge(500, 500), edge(10_500, 520, 1.0)) == "10,000 requests over 20 new connections"


def test_a_rate_that_is_missed_is_told():
    cell = replace(CELL, rate=10_000)
    told = refused(cell, edge(500, 11), edge(10_000, 11, 1.0))
    assert told == "9,500 requests a second in place of 10,000"


def test_a_generator_that_counts_more_than_the_server_is_refused():
    (wrk,) = [one for one in programs.PEERS if one.name == "wrk"]
    runs.check_count(wrk, CELL, "10100 requests in 1s", 10_000)
    with pytest.raises(programs.RunError, match="says 12,000 requests where the server counted 10,000"):
        runs.check_count(wrk, CELL, "12000 requests in 1s", 10_000)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wrk", "100 requests in 1s\n  Socket errors: connect 0, read 3"),
        ("wrk", "100 requests in 1s\n  Non-2xx or 3xx responses: 7"),
        ("ab", "Complete requests:      100\nFailed requests:        3"),
        ("h2load", "requests: 9 total, 9 started, 9 done, 8 succeeded, 1 failed, 0 errored, 0 timeout"),
        ("hey", "Status code distribution:\n  [200]\t9 responses\n  [502]\t1 responses"),
        ("fortio", "Code 200 : 9 (90.0 %)\nCode 503 : 1 (10.0 %)"),
        ("k6", '{"sent":10,"failed":1}'),
        ("oha", "  [200] 9 responses\n  [500] 1 responses"),
        ("autocannon", '{"errors":0,"timeouts":0,"non2xx":3,"2xx":9}'),
        ("vegeta", '{"success":0.9,"status_codes":{"0":1,"200":9},"errors":["EOF"]}'),
        ("bombardier", '{"result":{"req1xx":0,"req2xx":9,"req3xx":0,"req4xx":0,"req5xx":1,"others":0}}'),
        ("bombardier", '{"result":{"req1xx":0,"req2xx":9,"req3xx":0,"req4xx":0,"req5xx":0,"others":2}}'),
        ("siege", '"successful_transactions":\t   9,\n\t"failed_transactions":\t   1,'),
    ],
)
def test_wrong_replies_are_refused(name, text):
    (program,) = [one for one in programs.PEERS if one.name == name]
    with pytest.raises(programs.RunError):
        program.count(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vegeta", '{"requests":90,"success":1,"status_codes":{"200":90},"errors":[]}'),
        ("bombardier", '{"result":{"req1xx":0,"req2xx":90,"req3xx":0,"req4xx":0,"req5xx":0,"others":0}}'),
        ("siege", '"successful_transactions":\t   90,\n\t"failed_transactions":\t   0,'),
    ],
)
def test_the_word_of_a_generator_on_its_replies_is_read(name, text):
    (program,) = [one for one in programs.PEERS if one.name == name]
    assert program.count(text) == 90


def test_what_a_generator_writes_is_reported_by_a_second_command(tmp_path):
    order = programs.Order(CELL, 80, 1, tmp_path)
    asked = runs.Asked(1.0, "/usr/bin:/bin")
    says = replace(programs.PEERS[0], report=lambda order: ["echo", str(order.cell.connections)])
    assert runs.reported(says, order, asked) == "10\n"
    assert runs.reported(programs.PEERS[0], order, asked) == ""
    with pytest.raises(programs.RunError, match="its report ended with status 1"):
        runs.reported(replace(says, report=lambda order: ["false"]), order, asked)


def test_an_account_with_failures_is_refused():
    with pytest.raises(programs.RunError, match="timed_out"):
        engine().count('{"account": {"scheduled": 9, "ok": 8, "timed_out": 1}}')


def test_what_a_generator_cannot_do_is_said():
    (wrk,) = [one for one in programs.PEERS if one.name == "wrk"]
    assert wrk.cannot(CELL) is None
    assert wrk.cannot(replace(CELL, rate=5)) == "has no rate"
    assert wrk.cannot(replace(CELL, http2=True)) == "has no HTTP/2 without TLS"


def test_pronys_generator_can_do_all_cells():
    assert [cell.name for cell in CELLS if engine().cannot(cell)] == []


def test_cells_are_chosen_by_patterns_and_unknown_ones_refused():
    assert [cell.name for cell in chosen(["h2-1*"])] == ["h2-10x10", "h2-100x1"]
    with pytest.raises(ValueError, match="no cell is called `h3`"):
        chosen(["h3"])


def test_the_interval_of_a_median_lies_between_ordered_values():
    assert results.interval([float(value) for value in range(15, 0, -1)]) == (4.0, 12.0)
    assert results.interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == (1.0, 6.0)
    assert results.interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None


def test_ratios_are_those_of_the_same_block():
    own, other = ([replace(QUIET, value=value) for value in all_] for all_ in ((2.0, 9.0), (4.0, 3.0)))
    result = results.Result("closed-10", 1.0, {"prony": own, "wrk": other}, {})
    assert result.ratios("wrk") == [0.5, 3.0]


def test_results_are_read_as_they_were_written(tmp_path):
    written = results.Result("closed-10", 1.0, {"prony": [QUIET] * 2}, {"oha": "not installed"})
    results.write(tmp_path / "a.json", {"machine": "here"}, [written])
    assert results.read([tmp_path / "a.json"]) == ({"machine": "here"}, [written])


def test_cells_of_a_busy_machine_are_named():
    busy = results.Result("closed-10", 1.0, {"prony": [QUIET, *[replace(QUIET, others=0.3)] * 2]}, {})
    quiet = results.Result("closed-100", 1.0, {"prony": [QUIET, QUIET, replace(QUIET, others=0.3)]}, {})
    assert results.busy_cells([busy, quiet]) == ["closed-10"]


def test_figures_go_between_the_markers_of_a_page():
    page = f"before\n{results.BEGIN}\n\nold\n\n{results.END}\nafter\n"
    assert results.page_with(page, "new") == page.replace("old", "new")
    with pytest.raises(ValueError, match="no place for figures"):
        results.page_with("before", "new")


def test_the_page_on_performance_has_a_place_for_figures():
    page = (BENCH.parent / "docs/performance.md").read_text(encoding="utf-8")
    assert "new figures" in results.page_with(page, "new figures")


def test_at_a_rate_connections_are_opened_when_a_request_needs_one():
    cell = replace(CELL, rate=10_000)
    runs.check_window(cell, Counts(0, 1), edge(500, 4), edge(10_500, 6, 1.0))

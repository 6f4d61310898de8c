"""What external generators printed, read: recorded outputs of real runs beside what the server counted then.

Each ran for a second over 4 connections against the reference server: `ok`, `errors` (every fourth reply a
503), `silent` (every 50th request never answered, time-out 1 s), `reset` (the 20th reply of each connection
cut by a reset), `refused` (nobody listens).
"""

import json
from pathlib import Path

import pytest

from prony.core.errors import EngineError
from prony.engine.external import TOOLS
from prony.engine.external.engine import Around, to_recording
from prony.engine.external.tool import Job, Output
from prony.figures.account import counts_by_class
from prony.model.address import Address
from prony.model.recording import Distributions
from prony.model.workload import ClosedLoop, CountStop, DurationStop, Workload

SAMPLES = Path(__file__).parent / "samples"
CONNECTIONS = 4
RECORDED = ("wrk", "ab", "h2load", "hey", "fortio", "k6")
# In flight when the time was over, on each connection; fortio also sends one before the load.
SLACK = 2 * CONNECTIONS
SECOND = 1_000_000_000


def job(tool, **load):
    stop = CountStop(1000) if tool == "weighttp" else DurationStop(SECOND)
    return Job(tool, Workload(ClosedLoop(CONNECTIONS), stop, **load), Address("127.0.0.1", 8000))


def sample(name):
    told = json.loads((SAMPLES / f"{name}.json").read_text())
    return Output(told["stdout"], told["stderr"], told["files"]), told["server"]


def parsed(name, **load):
    tool = name.partition("-")[0]
    output, _ = sample(name)
    return TOOLS[tool].parse(output, job(tool, **load))


# --- held against what the server counted -----------------------------------------------------------------


@pytest.mark.parametrize("tool", RECORDED)
def test_all_replies_of_a_good_server_are_good(tool):
    measured, server = parsed(f"{tool}-ok"), sample(f"{tool}-ok")[1]
    assert server["responses_complete"] - SLACK <= measured.ok <= server["responses_complete"]
    assert not measured.bad_status
    assert not any(measured.failed.values())


@pytest.mark.parametrize("tool", RECORDED)
def test_replies_with_an_error_status_are_not_good(tool):
    measured, server = parsed(f"{tool}-errors"), sample(f"{tool}-errors")[1]
    good = server["responses_complete"] - server["responses_error_status"]
    assert good - SLACK <= measured.ok <= good
    assert abs(sum(measured.bad_status.values()) - server["responses_error_status"]) <= CONNECTIONS
    assert not any(measured.failed.values())


@pytest.mark.parametrize("tool", sorted(set(RECORDED) - {"hey"}))
def test_replies_that_a_reset_cut_are_not_good(tool):
    measured, server = parsed(f"{tool}-reset"), sample(f"{tool}-reset")[1]
    assert server["responses_complete"] - SLACK <= measured.ok <= server["responses_complete"]
    cut = server["requests"] - server["responses_complete"]
    # h2load does not tell them, which its caveats say.
    assert tool == "h2load" or cut - SLACK <= sum(measured.failed.values()) <= cut


def test_hey_takes_cut_replies_for_whole_ones_and_its_caveats_say_so():
    measured, server = parsed("hey-reset"), sample("hey-reset")[1]
    assert measured.ok > server["responses_complete"]
    assert any("truncated" in caveat for caveat in TOOLS["hey"].caveats)


@pytest.mark.parametrize("tool", ["hey", "k6"])
def test_requests_that_are_never_answered_time_out(tool):
    measured, server = parsed(f"{tool}-silent"), sample(f"{tool}-silent")[1]
    assert measured.ok == server["responses_complete"]
    assert measured.failed["timed_out"] == server["requests"] - server["responses_complete"]


@pytest.mark.parametrize("tool", ["wrk", "h2load", "fortio"])
def test_tools_that_forget_the_unanswered_say_so(tool):
    measured = parsed(f"{tool}-silent")
    assert not any(measured.failed.values())
    assert any("unanswered" in caveat or "does not report" in caveat for caveat in TOOLS[tool].caveats)


@pytest.mark.parametrize("tool", ["ab", "hey", "fortio", "k6", "h2load"])
def test_nobody_answers_where_nobody_listens(tool):
    measured = parsed(f"{tool}-refused")
    assert measured.ok == 0
    assert not measured.bad_status
    assert tool == "h2load" or sum(measured.failed.values()) > 0


@pytest.mark.parametrize("name", ["wrk-refused", "ab-silent"])
def test_a_tool_that_broke_off_told_nothing(name):
    with pytest.raises(EngineError, match="did not report"):
        parsed(name)


# --- latencies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", RECORDED)
def test_no_latency_is_below_the_servers_delay(tool):
    latency = parsed(f"{tool}-ok").latency
    delay_ns = 5_000_000
    values = [latency.min_ns, *latency.percentiles.values(), latency.max_ns]
    # h2load and hey round.
    assert delay_ns * 0.99 <= values[0]
    assert values == sorted(values)
    assert latency.percentiles or tool == "h2load"


def test_wrk_adds_latencies_that_no_request_had():
    # Four connections hold four times the duration of latency, as Little's law has it.
    measured = parsed("wrk-ok")
    assert measured.latency.mean_ns * measured.latency.count > 1.5 * CONNECTIONS * measured.duration_ns
    assert any("invented latencies" in caveat for caveat in TOOLS["wrk"].caveats)


@pytest.mark.parametrize(("tool", "population"), [("k6", "ok"), ("hey", "answered"), ("fortio", "all")])
def test_of_which_requests_the_latencies_are_is_told(tool, population):
    assert parsed(f"{tool}-errors").latency.population == population


def test_a_wanted_status_counts_alone():
    # The server's 503 is what is wanted here.
    assert parsed("hey-errors", expect_status=503).ok == 189
    assert parsed("hey-errors", expect_status=503).bad_status == {"200": 567}


# --- by their documented output ---------------------------------------------------------------------------

WEIGHTTP = """\
weighttp - a lightweight and simple webserver benchmarking tool

starting benchmark...
spawning thread #1: 4 concurrent requests, 1000 total requests
progress: 100% done

finished in 2 sec, 34 millisec and 567 microsec, 491 req/s, 100 kbyte/s
requests: 1000 total, 1000 started, 1000 done, 990 succeeded, 10 failed, 3 errored
status codes: 990 2xx, 0 3xx, 0 4xx, 7 5xx
traffic: 128000 bytes total, 114000 bytes http, 14000 bytes data
"""
OHA = {
    "summary": {"total": 1.002, "slowest": 0.009, "fastest": 0.005, "average": 0.0052, "totalData": 10500},
    "latencyPercentiles": {"p50": 0.0051, "p90": 0.0053, "p95": 0.006, "p99": 0.008, "p99.9": None},
    "statusCodeDistribution": {"200": 700, "503": 50},
    "errorDistribution": {
        "aborted due to deadline": 4,
        "connection error: Connection refused (os error 111)": 2,
    },
}
VEGETA = {
    "latencies": {
        "mean": 5.2e6,
        "50th": 5.1e6,
        "90th": 5.3e6,
        "95th": 6e6,
        "99th": 8e6,
        "max": 9e6,
        "min": 5e6,
    },
    "bytes_in": {"total": 700, "mean": 14},
    "duration": 999_000_000,
    "wait": 5_000_000,
    "requests": 550,
    "status_codes": {"0": 20, "200": 500, "503": 30},
    "errors": ["503 Service Unavailable", "dial tcp: connect: connection refused"],
}


def test_weighttp_counts_its_successes_without_the_errors():
    measured = TOOLS["weighttp"].parse(Output(WEIGHTTP), job("weighttp"))
    assert (measured.ok, measured.bad_status, measured.failed) == (990, {"5xx": 7}, {"unspecified": 3})
    assert measured.duration_ns == 2_034_567_000
    assert measured.latency is None


def test_oha_breaks_off_what_is_on_its_way():
    measured = TOOLS["oha"].parse(Output(json.dumps(OHA)), job("oha"))
    assert (measured.ok, measured.bad_status) == (700, {"503": 50})
    assert measured.failed == {"in_flight_at_end": 4, "connect_refused": 2}
    assert measured.latency.percentiles == {
        "50": 5_100_000,
        "90": 5_300_000,
        "95": 6_000_000,
        "99": 8_000_000,
    }


def test_vegeta_tells_a_kind_of_error_when_there_is_one():
    measured = TOOLS["vegeta"].parse(Output(json.dumps(VEGETA)), job("vegeta"))
    assert (measured.ok, measured.bad_status) == (500, {"503": 30})
    assert measured.failed == {"connect_refused": 20}
    assert measured.latency.population == "all"
    two = {**VEGETA, "errors": [*VEGETA["errors"], "net/http: timeout awaiting response headers"]}
    assert TOOLS["vegeta"].parse(Output(json.dumps(two)), job("vegeta")).failed == {"unspecified": 20}


# --- hostile and truncated --------------------------------------------------------------------------------

DOCUMENTED = {
    "weighttp": Output(WEIGHTTP),
    "oha": Output(json.dumps(OHA)),
    "vegeta": Output(json.dumps(VEGETA)),
}
WHOLE = {**{tool: sample(f"{tool}-ok")[0] for tool in RECORDED}, **DOCUMENTED}


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_every_tool_has_a_sample(tool):
    assert TOOLS[tool].parse(WHOLE[tool], job(tool)).ok > 0


@pytest.mark.parametrize("tool", sorted(TOOLS))
@pytest.mark.parametrize("text", ["", "\0" * 100, "nonsense\n" * 1000, "{}", "[]", "[" * 100_000, '{"a":1'])
def test_nonsense_is_refused_in_a_sentence(tool, text):
    with pytest.raises(EngineError) as error:
        TOOLS[tool].parse(Output(text, text, dict.fromkeys(WHOLE[tool].files, text)), job(tool))
    assert len(error.value.message) < 400


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_an_output_that_breaks_off_anywhere_is_read_or_refused(tool):
    whole = WHOLE[tool]
    full = TOOLS[tool].parse(whole, job(tool))
    longest = max(len(whole.stdout), *(len(text) for text in whole.files.values()), 1)
    for length in range(0, longest, max(1, longest // 200)):
        files = {name: text[:length] for name, text in whole.files.items()}
        try:
            measured = TOOLS[tool].parse(Output(whole.stdout[:length], "", files), job(tool))
        except EngineError:
            continue
        assert measured.ok <= full.ok


@pytest.mark.parametrize("number", ["-1", "NaN", "1e400", "x", "true"])
@pytest.mark.parametrize("tool", ["fortio", "k6", "oha", "vegeta", "wrk"])
def test_numbers_that_are_none_are_refused(tool, number):
    fields = {"fortio": "ActualDuration", "k6": "testRunDurationMs", "oha": "total", "vegeta": "duration"}
    field = fields.get(tool, "requests")

    def spoilt(text):
        import re

        value = number if number in ("-1", "1e400", "true") else f'"{number}"'
        return re.sub(rf'"{field}":\s*[0-9.e+]+', f'"{field}": {value}', text)

    output = WHOLE[tool]
    files = {name: spoilt(text) for name, text in output.files.items()}
    with pytest.raises(EngineError):
        TOOLS[tool].parse(Output(spoilt(output.stdout), "", files), job(tool))


# --- as a Recording ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_t25_the_account_adds_up_and_what_is_not_told_is_null(tool):
    told = Around((tool,), version="1", open_ns=5, close_ns=2 * SECOND)
    measured = TOOLS[tool].parse(WHOLE[tool], job(tool))
    recording = to_recording(TOOLS[tool], job(tool), measured, told)
    found = recording.account
    assert found.scheduled == sum(counts_by_class(found).values())
    assert found.others["failed_validation"] is None
    assert recording.distributions == Distributions()
    assert recording.engine.missing["distributions"]
    assert (found.carried_in, bool(recording.engine.missing["carried_in"])) == (None, True)
    assert recording.engine.caveats
    assert recording.window.close_ns == 5 + measured.duration_ns


def test_percentiles_that_a_handful_of_requests_decide_are_left_out():
    recording = to_recording(
        TOOLS["k6"], job("k6"), parsed("k6-ok"), Around(("k6",), open_ns=0, close_ns=SECOND)
    )
    percentiles = recording.reported_latency.percentiles
    assert percentiles["95"] is not None
    assert percentiles["99"] is None

"""`prony load` from outside: what is sent, what is counted, what is refused, how it ends."""

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from base64 import b64decode
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from commands import ended, eventually
from prony import _engine

NOBODY_HOME = "http://127.0.0.1:9/"


@pytest.fixture
def listener():
    """A server that keeps what it was sent."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((self.command, self.path, self.headers, body, self.client_address))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        do_GET = do_POST = do_PUT = answer  # noqa: N815

        def log_message(self, *arguments):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        server.seen = seen
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def account_adds_up(result):
    account = dict(result["account"])
    scheduled, bad_status, carried = (account.pop(name) for name in ("scheduled", "bad_status", "carried_in"))
    ok_status, _ = account.pop("ok_status", {}), account.pop("answered_early", 0)
    ended = carried["answered"] + sum(carried["failed"].values()) + sum(carried["unanswered"].values())
    is_whole = carried["requests"] == ended and account["ok"] == sum(ok_status.values())
    return is_whole and scheduled == sum(account.values()) + sum(bad_status.values())


# --- counting ---------------------------------------------------------------------------------------------


def test_a_plain_load_ends_well_and_says_what_it_measured(prony, reference):
    done = prony("load", reference, "-d", "300ms")
    assert (done.status, done.err) == (0, "")
    assert "Closed loop, 10 connections" in done.out
    assert "answered as expected" in done.out


def test_a_count_is_exact_whatever_the_connections(said, reference):
    result = said("load", reference, "-n", "1003", "-c", "7", "--json", "-").json
    assert result["account"]["scheduled"] == result["account"]["ok"] == 1003
    assert result["connections"]["opened"] == 7
    assert account_adds_up(result)


def test_an_open_loop_keeps_its_first_connects_out_of_the_window_unless_asked(said, reference):
    # At most one: a reply that comes late on a busy machine would have another one opened.
    load = ("load", reference, "--rate", "200", "-c", "1", "-d", "300ms", "--json", "-")
    assert said(*load).json["connections"]["opened"] == 0
    assert said(*load, "--warmup", "0s").json["connections"]["opened"] > 0


def test_an_open_loop_sends_rate_times_duration(said, reference):
    result = said("load", reference, "--rate", "200", "-d", "1s", "--json", "-").json
    assert (result["loop"], result["account"]["scheduled"]) == ("open", 200)
    assert result["latency"]["ok"]["response_ns"]["count"] == 200


def test_t11_stages_send_the_integral_of_their_rates_and_are_reported_each(said, reference):
    done = said("load", reference, "--stages", "200ms:100,300ms:100-300,100ms:0,100ms:50", "--json", "-")
    assert done.status == 0
    stages = done.json["stages"]
    assert [one["scheduled"] for one in stages] == [20, 60, 0, 5]
    assert [one["begin_ns"] for one in stages] == [0, 200_000_000, 500_000_000, 600_000_000]
    for name in ("scheduled", "ok"):
        assert sum(one[name] for one in stages) == done.json["account"][name] == 85
    assert [one["response_ns"]["ok"]["count"] for one in stages] == [20, 60, 0, 5]
    assert done.json["window"]["duration_s"] == pytest.approx(0.7)


def test_connections_in_stages_are_added_and_taken_away_and_every_request_ends(said, listener):
    done = said("load", listener.url, "--stages", "300ms:2c,200ms:2-6c,100ms:0c,200ms:1c", "--json", "-")
    assert done.status == 0
    result = done.json
    account_adds_up(result)
    stages = result["stages"]
    assert [(one["from_connections"], one["to_connections"]) for one in stages] == [
        (2, 2),
        (2, 6),
        (0, 0),
        (1, 1),
    ]
    assert sum(one["ok"] for one in stages) == result["account"]["ok"] == result["account"]["scheduled"]
    assert [one["service_ns"]["ok"]["count"] for one in stages] == [one["ok"] for one in stages]
    assert [one["response_ns"] for one in stages] == [None] * 4
    found = result["connections"]
    assert (found["added"], found["taken_away"], found["reconnects"]) == (5, 6, 1)
    assert len(listener.seen) == found["requests_sent"]
    # Six slots, of which one has had two sockets.
    assert len({address for *_, address in listener.seen}) == 7


def test_the_report_of_connections_in_stages_says_what_was_taken_away(said, reference):
    done = said("load", reference, "--stages", "200ms:1-3c,100ms:3c,100ms:1c")
    assert "3 stages of up to 3 connections" in done.out
    assert "2 connections added by the stages, 2 taken away after their request" in done.out


@pytest.mark.parametrize("reference", [{"error_every": 5}], indirect=True)
def test_errors_are_counted_in_their_stage(said, reference):
    done = said("load", reference, "--stages", "300ms:100,300ms:200", "-c", "1", "--json", "result.json")
    assert done.status == 0
    assert "Stages" in done.out
    result = said("load", reference, "--stages", "300ms:100,300ms:200", "-c", "1", "--json", "-").json
    assert [(one["ok"], one["failed"], one["errors"]) for one in result["stages"]] == [
        (24, 6, 6),
        (48, 12, 12),
    ]


def test_poisson_arrivals_repeat_by_seed(said, reference):
    command = ("load", reference, "--rate", "300", "-d", "500ms", "--arrivals", "poisson", "--json", "-")
    counts = [said(*command, "--seed", seed).json["account"]["scheduled"] for seed in (1, 1, 2, 3)]
    assert counts[0] == counts[1]
    assert len(set(counts)) > 1


@pytest.mark.parametrize("reference", [{"error_every": 4}], indirect=True)
def test_errors_of_the_server_are_counted_and_do_not_fail_the_command(said, reference):
    done = said("load", reference, "-n", "100", "-c", "1", "--json", "-")
    assert (done.status, done.json["account"]["ok"]) == (0, 75)
    assert done.json["account"]["bad_status"] == {"503": 25}


@pytest.mark.parametrize("reference", [{"error_every": 1}], indirect=True)
def test_an_expected_status_is_a_success(said, reference):
    result = said("load", reference, "-n", "10", "--expect-status", "503", "--json", "-").json
    assert result["account"]["ok"] == 10


@pytest.mark.parametrize("reference", [{"silent_every": 10}], indirect=True)
def test_a_time_out_ends_a_request_that_is_never_answered(said, reference):
    result = said("load", reference, "-n", "20", "-c", "1", "--timeout", "200ms", "--json", "-").json
    assert result["account"]["timed_out"] == 2
    assert result["account"]["ok"] == 18


def test_the_warm_up_is_not_counted(said, listener):
    result = said("load", listener.url, "-n", "20", "-c", "1", "--warmup", "200ms", "--json", "-").json
    assert result["account"]["scheduled"] == 20
    assert len(listener.seen) > 20


def test_more_connections_than_requests_are_no_harm(said, reference):
    assert said("load", reference, "-n", "3", "-c", "50", "--json", "-").json["account"]["ok"] == 3


OK = hashlib.sha256(b"ok").hexdigest()


@pytest.mark.parametrize(
    "checks",
    [
        ("--expect-status", "200,404"),
        ("--expect-status", "2xx"),
        ("--expect-header", "content-length: 2"),
        ("--expect-header", "Server"),
        ("--expect-body", "ok"),
        ("--expect-body-contains", "o", "--expect-body-contains", "k"),
        ("--expect-body-sha256", OK.upper()),
    ],
    ids=" ".join,
)
def test_a_reply_that_passes_its_checks_is_a_success(said, listener, checks):
    result = said("load", listener.url, "-n", "5", "-c", "1", *checks, "--json", "-").json
    assert result["account"]["ok"] == 5


@pytest.mark.parametrize(
    ("checks", "ending", "sample"),
    [
        (("--expect-status", "201,3xx"), "bad_status", "status 200"),
        (("--expect-header", "Server: nginx"), "failed_validation", "no header `Server: nginx`"),
        (("--expect-header", "ETag"), "failed_validation", "no header `ETag`"),
        (("--expect-body", "no"), "failed_validation", "another body than expected"),
        (("--expect-body-contains", "cart"), "failed_validation", "a body without `cart`"),
        (
            ("--expect-body-sha256", "0" * 64),
            "failed_validation",
            "a body with another SHA-256",
        ),
    ],
    ids=lambda value: value[0].strip("-") if isinstance(value, tuple) else "",
)
def test_a_reply_that_fails_a_check_is_no_success_and_a_sample_names_the_check(
    said, listener, checks, ending, sample
):
    done = said("load", listener.url, "-n", "5", "-c", "1", *checks, "--json", "-")
    assert (done.status, done.json["account"]["ok"]) == (3, 0)
    assert {(one["class"], one["detail"]) for one in done.json["errors"]} == {(ending, sample)}


# --- what is sent -----------------------------------------------------------------------------------------


def test_the_body_of_a_post_comes_from_a_file(said, folder, listener):
    (folder / "order.json").write_bytes(b'{"n": 1}\n\xff')
    said("load", listener.url, "-n", "3", "-c", "1", "-m", "post", "--body", "@order.json")
    assert [(seen[0], seen[3]) for seen in listener.seen] == [("POST", b'{"n": 1}\n\xff')] * 3


def test_a_body_may_be_typed(said, listener):
    said("load", listener.url, "-n", "1", "-c", "1", "-m", "PUT", "--body", "a=b")
    assert listener.seen[0][3] == b"a=b"


def test_headers_path_and_query_arrive_as_typed(said, listener):
    url = f"{listener.url}/a/b?c=d&e=%20f"
    said("load", url, "-n", "1", "-c", "1", "-H", "X-One: 1", "-H", "Accept:text/plain", "-H", "x-one: 2")
    _, path, headers, _, _ = listener.seen[0]
    assert path == "/a/b?c=d&e=%20f"
    assert headers.get_all("X-One") == ["1", "2"]
    assert headers["Accept"] == "text/plain"


def test_the_host_header_says_where_it_goes(said, listener):
    said("load", listener.url, "-n", "1", "-c", "1")
    assert listener.seen[0][2]["Host"] == listener.url.removeprefix("http://")


def test_a_host_header_of_ones_own_wins(said, listener):
    said("load", listener.url, "-n", "1", "-c", "1", "-H", "Host: shop.example")
    assert listener.seen[0][2].get_all("Host") == ["shop.example"]


def test_a_name_in_the_address_reaches_the_server(said, listener):
    port = listener.server_port
    done = said("load", f"http://localhost:{port}/", "-n", "2", "-c", "1", "--json", "-")
    assert done.json["account"]["ok"] == 2
    assert listener.seen[0][2].get_all("Host") == [f"localhost:{port}"]


def test_a_host_header_of_ones_own_wins_over_the_name_in_the_address(said, listener):
    url = f"http://localhost:{listener.server_port}/"
    said("load", url, "-n", "1", "-c", "1", "-H", "Host: shop.example")
    assert listener.seen[0][2].get_all("Host") == ["shop.example"]


def test_connections_are_kept(said, listener):
    said("load", listener.url, "-n", "20", "-c", "2")
    assert len({seen[4] for seen in listener.seen}) == 2


def test_without_keep_alive_each_request_has_its_connection(said, listener):
    said("load", listener.url, "-n", "20", "-c", "2", "--no-keepalive")
    assert set(Counter(seen[4] for seen in listener.seen).values()) == {1}
    assert {seen[2]["Connection"].lower() for seen in listener.seen} == {"close"}


@pytest.mark.parametrize(
    "form", ["http://127.0.0.1:{}", "127.0.0.1:{}", "127.0.0.1:{}/x?y", "http://127.1.2.3:{}/"]
)
def test_addresses_are_understood_as_people_type_them(said, form):
    from prony._engine import ReferenceServer

    host = "127.1.2.3" if "127.1.2.3" in form else "127.0.0.1"
    with ReferenceServer(json.dumps({"port": 0, "host": host})) as server:
        done = said("load", form.format(server.port), "-n", "2", "--json", "-")
    assert (done.status, done.json["account"]["ok"]) == (0, 2)


def test_ipv6_is_written_in_brackets(said):
    from prony._engine import EngineError, ReferenceServer

    try:
        server = ReferenceServer(json.dumps({"port": 0, "host": "::1"}))
    except EngineError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with server:
        done = said("load", f"http://[::1]:{server.port}/", "-n", "2", "--json", "-")
    assert (done.status, done.json["account"]["ok"]) == (0, 2)


# --- where the result goes --------------------------------------------------------------------------------


def test_json_to_standard_output_is_all_there_is(said, reference):
    done = said("load", reference, "-n", "5", "--json", "-")
    assert (done.json["version"], done.err) == (1, "")


def test_json_to_a_file_leaves_the_report_on_the_screen(said, folder, reference):
    done = said("load", reference, "-n", "5", "--json", "result.json")
    assert json.loads((folder / "result.json").read_text())["account"]["ok"] == 5
    assert "Requests" in done.out
    assert [path.name for path in folder.iterdir()] == ["result.json"]


def test_an_old_result_is_replaced(said, folder, reference):
    (folder / "result.json").write_text("old")
    said("load", reference, "-n", "5", "--json", "result.json")
    assert json.loads((folder / "result.json").read_text())["version"] == 1


def test_a_folder_that_is_not_there_is_told(said, reference):
    done = said("load", reference, "-n", "1", "--json", "nowhere/result.json")
    assert done.status == 2
    assert "cannot write `nowhere/result.json`: No such file or directory" in done.err


# --- raw latencies ----------------------------------------------------------------------------------------


def rows_of(file):
    with file.open() as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("reference", [{"error_every": 4, "body": "hello"}], indirect=True)
def test_t24_the_file_of_latencies_has_each_request_of_the_window_once(said, folder, reference):
    command = ("load", reference, "--rate", "400", "-d", "500ms", "--threads", "2", "--latencies", "all.csv")
    result = said(*command, "--json", "-").json
    rows = rows_of(folder / "all.csv")
    assert result["raw_latencies"] == {"rows": 200, "lost": 0, "error": None}
    assert len(rows) == result["account"]["scheduled"] == 200
    assert Counter(row["class"] for row in rows) == {
        "ok": result["account"]["ok"],
        "bad_status 503": result["account"]["bad_status"]["503"],
    }
    assert {row["body_bytes"] for row in rows} == {"5"}
    assert sorted(int(row["intended_ns"]) for row in rows) == [k * 2_500_000 for k in range(200)]
    assert all(int(row["intended_ns"]) <= int(row["sent_ns"]) < int(row["done_ns"]) for row in rows)
    longest = max(int(row["done_ns"]) - int(row["intended_ns"]) for row in rows if row["class"] == "ok")
    assert longest == result["latency"]["ok"]["response_ns"]["max"]


def test_the_rows_of_a_connection_follow_one_another(said, folder, reference):
    said("load", reference, "-n", "100", "-c", "4", "--latencies", "all.csv")
    ends = {}
    for row in rows_of(folder / "all.csv"):
        assert int(row["sent_ns"]) >= ends.get(row["connection"], 0)
        ends[row["connection"]] = int(row["done_ns"])
    assert len(ends) == 4


def test_what_was_never_sent_has_no_time_of_sending_and_no_connection(said, folder):
    command = ("load", NOBODY_HOME, "--rate", "50", "-d", "100ms", "--warmup", "0s")
    done = said(*command, "--latencies", "all.csv")
    assert done.status == 3
    rows = rows_of(folder / "all.csv")
    assert [(row["class"], row["sent_ns"], row["connection"]) for row in rows] == [
        ("connect_refused", "", "")
    ] * 5


def test_a_full_disk_is_told_and_the_figures_are_shown(said, reference):
    done = said("load", reference, "-n", "50", "--latencies", "/dev/full")
    assert done.status == 3
    assert "not whole; missing: 50 requests (No space left on device" in " ".join(done.out.split())
    assert "100 %" in done.out


@pytest.mark.parametrize("option", ["--latencies", "--hdr-log"])
def test_a_file_that_cannot_be_made_is_refused_before_the_load(said, listener, option):
    done = said("load", listener.url, "-n", "5", option, "nowhere/file")
    assert (done.status, listener.seen) == (2, [])
    assert "cannot write `nowhere/file`" in done.err


def test_a_pipe_without_a_reader_is_refused(said, folder):
    os.mkfifo(folder / "pipe")
    done = said("load", NOBODY_HOME, "-n", "5", "--latencies", "pipe")
    assert done.status == 2
    assert "`--latencies pipe` is a pipe" in done.err


def test_t26_the_log_of_histograms_holds_every_valid_reply(said, folder, reference):
    from prony._engine import Histogram

    said("load", reference, "--rate", "300", "-d", "1200ms", "--warmup", "0s", "--hdr-log", "load.hlog")
    lines = [line for line in (folder / "load.hlog").read_text().splitlines() if line[0].isdigit()]
    assert len(lines) == 2
    counts = [len(Histogram.decode(b64decode(line.rpartition(",")[2]))) for line in lines]
    assert sum(counts) == 360


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("foo", "`foo` is not a target; expected `http://HOST[:PORT][/PATH]`"),
        ("http://me:s3cret@127.0.0.1:0/", "`http://...@127.0.0.1:0/` is not a target"),
        ("https://me:s3cret@:443/", "`https://...@:443/` is not a target"),
        ("me:s3cret@shop.example", "is not a target"),
    ],
)
def test_a_target_is_refused_for_what_is_wrong_and_without_its_password(said, url, told):
    done = said("load", url)
    assert done.status == 2
    assert told in done.err
    assert "s3cret" not in done.err


def test_a_headers_name_with_a_blank_is_a_misuse_of_its_option(said):
    done = said("load", NOBODY_HOME, "-H", "a b: c")
    assert done.status == 2
    assert "`-H a b: ...`" in done.err


def test_a_json_file_that_cannot_be_written_is_told_before_anything_is_sent(said, listener):
    assert said("load", listener.url, "-n", "1", "--json", "nowhere/result.json").status == 2
    assert listener.seen == []


@pytest.mark.parametrize(
    "option",
    [["--arrivals", "poisson"], ["--seed", "2"], ["--pacing", "precise"]],
    ids=lambda option: option[0],
)
def test_an_option_of_the_open_loop_is_refused_without_a_rate(said, option):
    done = said("load", NOBODY_HOME, "-n", "1", *option)
    assert done.status == 2
    assert f"`{option[0]}` only works in an open loop, and without `--rate` the loop is closed" in done.err


# --- how it ends ------------------------------------------------------------------------------------------


def test_nothing_answered_is_no_measurement(said):
    done = said("load", NOBODY_HOME, "-n", "5")
    assert done.status == 3
    assert "connection refused" in done.out


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130)])
def test_an_interruption_ends_it_at_once_with_what_was_measured(prony, folder, listener, number, status):
    rate = ("--rate", "50", "--warmup", "0s")
    files = ("--json", "result.json", "--latencies", "all.csv")
    command = ("load", listener.url, *rate, "-d", "60s", *files)
    with ended(prony.start(*command)) as process:
        assert eventually(lambda: len(listener.seen) > 20, 20)
        process.send_signal(number)
        out, err = process.communicate(timeout=5)
    assert (process.returncode, err) == (status, "")
    assert "Interrupted: the figures are of the time before." in out
    result = json.loads((folder / "result.json").read_text())
    assert result["window"]["interrupted"]
    assert 20 <= result["account"]["ok"] <= len(listener.seen)
    assert account_adds_up(result)
    assert len(rows_of(folder / "all.csv")) == result["account"]["scheduled"]


def test_an_interruption_during_the_warm_up_ends_it_too(prony, listener):
    with ended(prony.start("load", listener.url, "--rate", "50", "--warmup", "60s")) as process:
        assert eventually(lambda: len(listener.seen) > 5, 20)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=5)
    assert process.returncode == 130


def test_ctrl_c_does_not_reach_what_a_script_started_in_the_background(prony, listener):
    command = ("load", listener.url, "--rate", "50", "-d", "1s")
    with ended(prony.start(*command, ignored=[signal.SIGINT])) as process:
        assert eventually(lambda: len(listener.seen) > 5, 20)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert "Interrupted" not in out


@pytest.mark.parametrize("command", [["servers"], ["load", "REFERENCE", "-n", "10"], ["--help"]])
def test_a_reader_that_has_gone_is_no_error(prony, reference, command):
    read, write = os.pipe()
    os.close(read)
    arguments = [reference if word == "REFERENCE" else word for word in command]
    done = subprocess.run(
        [sys.executable, "-m", "prony", *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        env=prony.environment(),
        cwd=prony.folder,
        timeout=30,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("reference", [{"error_every": 4}], indirect=True)
@pytest.mark.parametrize(
    ("condition", "status", "told"),
    [
        ("errors > 20%", 1, "errors > 20%: fails, the condition holds: 25.00 %"),
        ("errors > 30%", 0, "errors > 30%: passes: 25.00 %"),
        ("p99.99 of ok > 1h", 3, "cannot be decided: fewer than 10 requests lie above it"),
    ],
)
def test_a_condition_decides_the_exit_status(said, reference, condition, status, told):
    # An open loop: in a closed one a generator that may have been the limit leaves errors open.
    done = said("load", reference, "-n", "100", "--rate", "200", "--fail-if", condition)
    assert done.status == status
    assert told in done.out


@pytest.mark.parametrize("reference", [{"error_every": 4}], indirect=True)
def test_a_condition_that_holds_outweighs_one_that_cannot_be_decided(said, reference):
    conditions = ("--fail-if", "p99.99 of ok > 1h", "--fail-if", "errors > 20%")
    done = said("load", reference, "-n", "100", "-c", "1", *conditions, "--json", "-")
    assert done.status == 1
    assert [(one["condition"], one["holds"]) for one in done.json["fail_if"]] == [
        ("p99.99 of ok > 1h", None),
        ("errors > 20%", True),
    ]


@pytest.mark.parametrize("reference", [{"status": 500}], indirect=True)
def test_t29_when_all_replies_are_errors_nothing_succeeded_and_the_status_says_so(said, reference):
    done = said("load", reference, "-n", "100", "--json", "-")
    assert (done.status, done.json["ratio"]["success"], done.json["rate"]["ok_per_s"]) == (3, 0.0, 0.0)


def test_t25_a_statistic_that_is_not_known_is_null_and_never_another_one(said, reference):
    found = said("load", reference, "-n", "30", "-c", "1", "--json", "-").json["latency"]["ok"]
    assert found["response_ns"] is None
    percentiles = found["service_ns"]["percentiles"]
    assert percentiles["50"] > 0
    assert [percentiles[name] for name in ("90", "99", "99.9", "99.99")] == [None] * 4


@pytest.mark.parametrize("reference", [{"error_every": 2}], indirect=True)
def test_t37_the_rate_is_of_successes_and_errors_stand_apart(said, reference):
    rate = said("load", reference, "-n", "100", "-c", "1", "--json", "-").json["rate"]
    assert rate["ok_per_s"] == pytest.approx(rate["error_per_s"])
    assert rate["attempted_per_s"] == pytest.approx(2 * rate["ok_per_s"])


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["example.org", "192.0.2.1", "10.0.0.1", "[2001:db8::1]", "localhost.example"]
)
def test_another_machine_is_loaded_only_when_it_is_named(said, host):
    done = said("load", f"http://{host}/", "-n", "1")
    bare = host.strip("[]")
    assert done.status == 2
    assert done.err == (
        f"error: `{bare}` is not this machine; a load can do harm, so other hosts must be named\n\n"
        f"hint: if you may load it: prony load ... --allow-host {bare}\n"
    )


def test_naming_one_host_allows_no_other(said):
    assert said("load", "http://192.0.2.1/", "-n", "1", "--allow-host", "192.0.2.2").status == 2


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "http://",
        "http:///x",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:0/",
        "http://127.0.0.1:x/",
        "http://[::1",
        "",
    ],
)
def test_what_is_no_target_is_refused_with_its_form(said, url):
    done = said("load", url, "-n", "1")
    assert done.status == 2
    assert f"error: `{url}` is not a target; expected `http://HOST[:PORT][/PATH]`" in done.err


@pytest.mark.parametrize(
    ("options", "named", "expected"),
    [
        (["-c", "0"], "`-c 0`", "one or more counts"),
        (["-c", "ten"], "`-c ten`", "one or more counts"),
        (["-c", "1,2"], "`-c 1,2`", "one count"),
        (["-c", "99999999"], "`-c 99999999`", "at most 500,000"),
        (["-c", "-5"], "`-c -5`", "one or more counts"),
        (["--rate", "0"], "`--rate`: `0`", "requests per second"),
        (["--rate", "fast"], "`--rate`: `fast`", "requests per second"),
        (["--rate", "1e50"], "`--rate 1e50`", "at most 1,000,000,000"),
        (["-d", "5"], "`-d`: `5`", "a number and a unit"),
        (["-d", "0s"], "`-d 0s`", "more than zero"),
        (["-d", "9999h"], "`-d 9999h`", "at most a day"),
        (["--warmup", "x"], "`--warmup`: `x`", "a number and a unit"),
        (["--timeout", "0s"], "`--timeout 0s`", "more than zero"),
        (["--timeout", "never"], "`--timeout`: `never`", "a number and a unit"),
        (["--connect-timeout", "0s"], "`--connect-timeout 0s`", "more than zero"),
        (["--grace", "1"], "`--grace`: `1`", "a number and a unit"),
        (["-n", "0"], "`-n/--requests 0`", "at least 1"),
        (["-n", "many"], "`-n/--requests many`", "a whole number"),
        (["-n", "9" * 30], "`-n/--requests 99", "at most"),
        (["-n", "5", "-d", "5s"], "`-n` and `-d`", "expected one of them"),
        (["--threads", "0"], "`--threads 0`", "at least 1"),
        (["--seed", "-1"], "`--seed -1`", "at least 0"),
        (["--expect-status", "1000"], "`--expect-status 1000`", "statuses from 100 to 999"),
        (["--expect-status", "2x"], "`--expect-status 2x`", "such as `200`"),
        (["--expect-header", "a b: c"], "`--expect-header 'a b: c'`", "`Name: value` or `Name`"),
        (["--expect-body-contains", ""], "`--expect-body-contains`", "some text"),
        (["--expect-body-sha256", "beef"], "`--expect-body-sha256 beef`", "64 hexadecimal digits"),
        (["--pacing", "fast"], "`--pacing fast`", "one of 'precise', 'economical'"),
        (["--arrivals", "x"], "`--arrivals x`", "one of 'constant', 'poisson'"),
        (["-m", "GE T"], "`-m GE T`", "a method such as"),
        (["-H", "nocolon"], "`-H 'nocolon'`", "`Name: value`"),
        (["-H", "A: b\r\nC: d"], "`-H 'A: b\\r\\nC: d'`", "on one line"),
        (["--body", "@nowhere"], "`--body @nowhere`", "No such file"),
        (["--fail-if", "p99 > 5"], "`--fail-if`: `5`", "a number and a unit"),
        (["--fail-if", "cpu > 5%"], "`--fail-if`: `cpu`", "expected one of p50"),
        (["--stages", "30s"], "`--stages`: `30s`", "a duration and a rate"),
        (["--stages", "30s:1-"], "`--stages`: `30s:1-`", "from one rate to another"),
        (["--stages", "30:5"], "`--stages`: `30`", "a number and a unit"),
        (["--stages", "30s:x"], "`--stages`: `x`", "requests per second"),
        (["--stages", "30s:0"], "`--stages 30s:0`", "a rate above 0"),
        (["--stages", ",".join(["1s:1"] * 101)], "101 stages", "at most 100"),
        (["--stages", "1s:1", "-d", "5s"], "`--stages` and `-d`", "exclude each other"),
        (["--stages", "1s:1", "--rate", "5"], "`--stages` and `--rate`", "exclude each other"),
        (["--stages", "1s:1", "-n", "5"], "`--stages` and `-n`", "exclude each other"),
        (["--stages", "1s:1c", "-d", "5s"], "`--stages` and `-d`", "the stages set the connections"),
        (["--stages", "1s:1c", "--rate", "5"], "`--stages` and `--rate`", "replace --stages by -c and -d"),
        (["--stages", "1s:1c", "-c", "5"], "`-c` does not work with `--stages 1s:1c`", "leave out -c"),
        (["--stages", "1s:1c", "--seed", "5"], "`--seed` does not work with", "give rates"),
        (["--stages", "1s:1c", "--pacing", "precise"], "`--pacing` does not work with", "closed loop"),
        (["--stages", "1s:1c,1s:5"], "`1s:1c` sets connections and `1s:5` a rate", "stages of one kind"),
        (["--stages", "1s:0c"], "`--stages 1s:0c`", "expected a connection"),
        (["--stages", "1s:x-5c"], "`--stages`: `x`", "expected such as `10c`"),
        (["--stages", "1s:1-500001c"], "`--stages`: `500001c`", "at most 500,000"),
        (["--nonsense"], "--nonsense", "no such option"),
    ],
)
def test_a_bad_value_is_refused_by_option_value_and_expectation(said, options, named, expected):
    done = said("load", NOBODY_HOME, *options)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert named in done.err
    assert expected in done.err


@pytest.mark.parametrize("path", ["/a b", "/a\tb", "/a\nb"])
def test_blanks_in_the_address_are_not_sent(said, path):
    done = said("load", f"http://127.0.0.1:9{path}", "-n", "1")
    assert done.status == 2


def test_a_name_without_an_address_is_told(said):
    done = said(
        "load", "http://nowhere.invalid/", "--allow-host", "nowhere.invalid", "-n", "1", "--timeout", "1s"
    )
    assert done.status == 3
    assert "no address for `nowhere.invalid`" in done.err


@pytest.mark.parametrize(("strict", "status"), [((), 0), (("--strict",), 3)])
def test_t42_strict_fails_a_load_whose_generator_was_the_limit(said, strict, status):
    config = {"port": 0, "delay": {"kind": "fixed", "ns": 20_000_000}}
    with _engine.ReferenceServer(json.dumps(config)) as found:
        url, options = f"http://127.0.0.1:{found.port}/", ("--rate", "500", "-c", "2", "-d", "300ms")
        done = said("load", url, *options, "--warmup", "100ms", *strict)
    assert done.status == status
    assert done.out.splitlines()[2].startswith("The generator was the limit (2 requests at most could be")

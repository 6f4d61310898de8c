"""`prony load --pipeline`: what is sent, what is shown, what is refused."""

import json

import pytest

from prony._engine import ReferenceServer


@pytest.fixture
def url():
    with ReferenceServer(json.dumps({"body": "hello"})) as server:
        yield f"http://127.0.0.1:{server.port}/"


def test_each_connection_has_several_requests_at_once(said):
    # The server works on one after the other, so the last of eight takes eight times as long as the first.
    slow = {"delay": {"kind": "fixed", "ns": 20_000_000}}
    with ReferenceServer(json.dumps(slow)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        done = said("load", url, "--pipeline", "8", "-c", "2", "-n", "16", "--json", "-")
        seen = json.loads(server.counts())
    assert (done.status, done.json["account"]["ok"], seen["requests"]) == (0, 16, 16)
    assert (seen["connections_accepted"], done.json["connections"]["opened"]) == (2, 2)
    assert done.json["target"]["wire"] == {"kind": "http", "pipeline": 8}
    assert done.json["latency"]["ok"]["service_ns"]["max"] >= 8 * 20_000_000


def test_the_report_says_how_many_there_were(said, url):
    done = said("load", url, "--pipeline", "8", "-c", "2", "-n", "50")
    assert done.status == 0
    assert "Closed loop, 2 connections with 8 requests in a pipeline on each" in " ".join(done.out.split())


def test_other_methods_are_sent_where_that_is_asked_for(said, url):
    typed = ("-m", "POST", "--body", "x", "--pipeline", "4", "--pipeline-any-method")
    done = said("load", url, *typed, "-n", "50", "--json", "-")
    assert (done.status, done.json["account"]["ok"]) == (0, 50)
    assert done.json["target"]["wire"] == {"kind": "http", "pipeline": 4, "any_method": True}


def test_one_at_a_time_is_no_pipeline(said, url):
    done = said("load", url, "--pipeline", "1", "-n", "5", "--json", "-")
    assert done.json["target"]["wire"] == {"kind": "http"}


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ["http://127.0.0.1:1/", "--pipeline", "2", "--http2"],
            "`--pipeline` and `--http2` exclude each other",
        ),
        (["http://127.0.0.1:1/", "--pipeline", "2", "--http1.0"], "`--pipeline` and `--http1.0` exclude"),
        (["http://127.0.0.1:1/", "--pipeline", "2", "--no-keepalive"], "`--pipeline` and `--no-keepalive`"),
        (["fcgi://127.0.0.1:1/", "--pipeline", "2"], "`--pipeline` does not work with fastcgi"),
        (["http://127.0.0.1:1/", "--pipeline", "2", "-m", "POST"], "not safe to repeat"),
        (["http://127.0.0.1:1/", "--pipeline-any-method"], "only works with `--pipeline`"),
        (["http://127.0.0.1:1/", "--pipeline", "2", "-H", "Connection: close"], "expected 1 with a header"),
    ],
)
def test_what_does_not_fit_is_refused(said, typed, message):
    done = said("load", *typed)
    assert done.status != 0
    assert message in done.err.replace("\n", " ")

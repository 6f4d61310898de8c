"""`prony load --http1.0`: what is sent, what is shown, what is refused."""

import json

import pytest

from prony._engine import ReferenceServer


@pytest.fixture
def url():
    with ReferenceServer(json.dumps({"body": "hello"})) as server:
        yield f"http://127.0.0.1:{server.port}/"


def test_each_request_has_a_connection_unless_keep_alive_is_asked_for(said, url):
    for typed, opened in [((), 40), (("--no-keepalive",), 40), (("--keepalive",), 4)]:
        done = said("load", url, "--http1.0", *typed, "-c", "4", "-n", "40", "--json", "-")
        assert (done.status, done.json["account"]["ok"]) == (0, 40)
        assert done.json["connections"]["opened"] == opened
        wire = {"kind": "http", "version": "1.0", "modifier1": None, "streams": None}
        assert done.json["target"]["wire"] == wire


def test_the_report_says_which_version_it_was(said, url):
    done = said("load", url, "--http1.0", "-n", "5")
    assert done.status == 0
    assert "(HTTP/1.0)" in done.out
    assert "(HTTP" not in said("load", url, "-n", "5").out


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["http://127.0.0.1:1/", "--http1.0", "--http2"], "`--http1.0` and `--http2` exclude each other"),
        (["fcgi://127.0.0.1:1/", "--http1.0"], "`--http1.0` does not work with fastcgi"),
        (["http://127.0.0.1:1/", "--http1.0", "--streams", "2"], "`--streams` only works with `--http2`"),
        (
            ["http://127.0.0.1:1/", "--http1.0", "-H", "Transfer-Encoding: chunked"],
            "expected none of that name with HTTP/1.0",
        ),
    ],
)
def test_what_does_not_fit_is_refused(said, typed, message):
    done = said("load", *typed)
    assert done.status != 0
    assert message in done.err.replace("\n", " ")

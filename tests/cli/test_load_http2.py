"""`prony load --http2`: what is sent, what is shown, what is refused."""

import pytest

from http2_server import CERTIFICATES, ok, reset, serving, settings


def test_connections_have_as_many_requests_at_once_as_streams(said):
    with serving() as server:
        url = f"http://127.0.0.1:{server.port}/"
        done = said("load", url, "--http2", "-c", "2", "--streams", "5", "-n", "200", "--json", "-")
    assert (done.status, done.json["account"]["ok"], server.requests) == (0, 200, 200)
    assert (server.connections, done.json["connections"]["opened"]) == (2, 2)
    wire = done.json["target"]["wire"]
    assert wire == {"kind": "http2", "streams": 5, "modifier1": None, "version": None}
    streams = done.json["streams"]
    assert streams["wire"]["count"] == streams["stream_wait"]["count"] == 200
    assert streams["schedule_wait"] is None
    assert (streams["goaways"], streams["refused"], streams["resets"], streams["limit"]) == (0, 0, 0, None)


def test_an_open_loop_shows_all_three_parts_of_its_latencies(said):
    with serving() as server:
        url = f"http://127.0.0.1:{server.port}/"
        done = said("load", url, "--http2", "--streams", "4", "--rate", "200", "-n", "50")
    assert done.status == 0
    assert f"Load on 127.0.0.1:{server.port} (HTTP/2)" in done.out
    for part in ("waiting for a connection", "waiting for a stream", "on the wire"):
        assert part in done.out


def test_a_limit_of_the_server_is_said(said):
    with serving(opening=settings(most_streams=2)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        done = said("load", url, "--http2", "-c", "1", "--streams", "8", "-n", "300")
    assert done.status == 0
    assert "Closed loop, 1 connection with 8 streams each" in done.out
    assert "The server took no more than 2 streams at once on a connection." in done.out


def test_streams_that_the_server_resets_are_failures_and_said(said):
    with serving(lambda number, stream: reset(stream) if number % 10 == 9 else ok(stream)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        done = said("load", url, "--http2", "-c", "1", "--streams", "3", "-n", "100", "--json", "-")
    assert (done.json["account"]["ok"], done.json["account"]["reset"]) == (90, 10)
    assert done.json["streams"]["resets"] == 10
    assert done.json["errors"][0]["detail"] == "the server reset the stream: INTERNAL_ERROR"


def test_over_tls_both_sides_agree_on_it(said):
    with serving(protocols=["h2"]) as server:
        url = f"https://127.0.0.1:{server.port}/"
        ca = str(CERTIFICATES / "ca.pem")
        done = said("load", url, "--http2", "--cacert", ca, "-c", "2", "--streams", "3", "-n", "60")
    assert done.status == 0
    assert f"Load on 127.0.0.1:{server.port} (HTTP/2, TLS)" in done.out
    assert "h2 within" in " ".join(done.out.split())


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["http://127.0.0.1:1/", "--streams", "3"], "`--streams` only works with `--http2`"),
        (["http://127.0.0.1:1/", "--http2", "--no-keepalive"], "`--no-keepalive` does not work"),
        (["fcgi://127.0.0.1:1/", "--http2"], "`--http2` does not work with fastcgi"),
        (["http://127.0.0.1:1/", "--http2", "-H", "Connection: close"], "HTTP/2 does not have it"),
    ],
)
def test_what_does_not_fit_is_refused(said, typed, message):
    done = said("load", *typed)
    assert done.status != 0
    assert message in done.err.replace("\n", " ")

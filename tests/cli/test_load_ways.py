"""Where connections of a load go: typed addresses, other places, proxies, and how long connections last."""

import base64
import json
import socket
import threading
from pathlib import Path

import pytest

from commands import ended, eventually
from counting_server import answering, connections, head_of, header, listening, requests
from http2_server import serving as serving_http2
from prony import _engine
from prony.core.errors import UsageError
from prony.engine.target import target_of
from prony.engine.ways import Way, connect_to_of, proxy_of, resolve_of

CERTIFICATES = Path(__file__).parents[1] / "certificates"
SECRET = "open sesame"
USER = f"Basic {base64.b64encode(b'me:' + SECRET.encode()).decode()}"


# --- addresses and other places ---------------------------------------------------------------------------


def test_a_typed_address_is_loaded_by_the_name_of_the_url(said):
    with listening(answering) as (port, seen):
        typed = ("--resolve", f"shop.example:{port}:127.0.0.1")
        done = said("load", f"http://shop.example:{port}/", *typed, "-n", "3", "-c", "1", "--json", "-")
    assert done.json["account"]["ok"] == len(requests(seen)) == 3
    assert {header(one, "host") for one in requests(seen)} == {f"shop.example:{port}"}


@pytest.mark.parametrize("typed", ["shop.example:80:127.0.0.1:{}", "::127.0.0.1:{}", ":80:localhost:{}"])
def test_another_place_is_loaded_by_the_name_of_the_url(said, typed):
    with listening(answering) as (port, seen):
        place = typed.format(port)
        done = said("load", "http://shop.example/", "--connect-to", place, "-n", "3", "--json", "-")
    assert done.json["account"]["ok"] == len(requests(seen)) == 3
    assert {header(one, "host") for one in requests(seen)} == {"shop.example"}


def test_a_literal_that_is_diverted_keeps_its_name(said):
    with listening(answering) as (port, seen):
        said("load", "http://127.0.0.1:81/", "--connect-to", f":::{port}", "-n", "1", "-c", "1")
    assert header(requests(seen)[0], "host") == "127.0.0.1:81"


def test_connections_to_several_addresses_are_counted_by_address(said):
    with listening(answering, "127.0.0.2") as (port, first), listening(answering, "127.0.0.3", port) as other:
        typed = f"shop.example:{port}:127.0.0.2,127.0.0.3"
        done = said(
            *("load", f"http://shop.example:{port}/", "--resolve", typed),
            *("-n", "40", "-c", "5", "--json", "-"),
        )
        # Those that were open before the window count, too.
        told = said("load", f"http://shop.example:{port}/", "--resolve", typed, "-d", "0.3s", "-c", "4").out
    assert done.json["connections"]["by_address"] == {"127.0.0.2": 3, "127.0.0.3": 2}
    # The look for who listens is a connection too.
    assert (connections(first), connections(other[1])) == (3 + 2 + 2, 2 + 2 + 2)
    assert "connections by address: 127.0.0.2 2, 127.0.0.3 2" in told


def test_a_connection_that_is_made_again_goes_to_the_next_address(said):
    with listening(answering, "127.0.0.2") as (port, _), listening(answering, "127.0.0.3", port):
        typed = f"shop.example:{port}:127.0.0.2,127.0.0.3"
        options = ("--resolve", typed, "--no-keepalive", "-c", "1", "-n", "40", "--json", "-")
        done = said("load", f"http://shop.example:{port}/", *options)
    assert done.json["connections"]["by_address"] == {"127.0.0.2": 20, "127.0.0.3": 20}


def test_one_address_has_no_count_of_its_own(said, reference):
    assert said("load", reference, "-n", "1", "--json", "-").json["connections"].get("by_address") == {}


def test_the_certificate_is_for_the_name_of_the_url(said):
    tls = {name: (CERTIFICATES / f"server.{end}").read_text() for name, end in PEM}
    with _engine.ReferenceServer(json.dumps({"tls": tls})) as server:
        ways = [("localhost", 0), ("other.example", 3)]
        for name, status in ways:
            typed = ("--resolve", f"{name}:{server.port}:127.0.0.1", "--cacert", CERTIFICATES / "ca.pem")
            url = f"https://{name}:{server.port}/"
            assert said("load", url, *typed, "-n", "2", "-c", "1").status == status


PEM = (("certificate", "pem"), ("key", "key"))


@pytest.mark.parametrize(
    ("typed", "refused"),
    [
        (("--resolve", "localhost:80:192.0.2.1"), "192.0.2.1"),
        # A name that is allowed does not vouch for an address that was typed for it.
        (("--resolve", "localhost:80:127.0.0.1,192.0.2.1", "--allow-host", "localhost"), "192.0.2.1"),
        (("--connect-to", "localhost:80:shop.example:80"), "shop.example"),
        (("--connect-to", "localhost::[2001:db8::1]:"), "2001:db8::1"),
        (("--connect-to", ":::81", "--resolve", "localhost:81:192.0.2.1"), "192.0.2.1"),
        (("--proxy", "http://192.0.2.1:3128"), "192.0.2.1"),
        (("--proxy", "http://shop.example:3128"), "shop.example"),
    ],
)
def test_no_way_leads_to_a_machine_that_is_not_allowed(said, typed, refused):
    done = said("load", "http://localhost/", *typed, "-n", "1")
    assert (done.status, done.out) == (2, "")
    assert f"`{refused}` is not this machine" in done.err


def test_a_proxy_is_not_asked_for_a_machine_that_is_not_allowed(said):
    with listening(answering) as (port, seen):
        for url in ("http://shop.example/", "https://192.0.2.1/", "http://[2001:db8::1]/"):
            assert said("load", url, "-x", f"http://127.0.0.1:{port}", "-n", "1").status == 2
    assert seen == []


def test_this_machine_behind_a_proxy_elsewhere_is_another_machine():
    way = Way(proxy=proxy_of("http://192.0.2.1:3128"))
    with pytest.raises(UsageError, match="`localhost` is not this machine"):
        target_of("http://localhost/").address(["192.0.2.1"], way=way)


@pytest.mark.parametrize(
    "typed",
    [
        ("--resolve", "shop.example"),
        ("--resolve", "localhost:80:shop.example"),
        ("--resolve", "localhost:0:127.0.0.1"),
        ("--resolve", "localhost:81:127.0.0.1"),
        ("--connect-to", "localhost"),
        ("--connect-to", "localhost:80:127.0.0.1:65536"),
        ("--connect-to", "shop.example:80:127.0.0.1:81"),
        ("--proxy", "https://127.0.0.1:3128"),
        ("--proxy", "http://127.0.0.1"),
        ("--proxy", f"http://me:{SECRET}@127.0.0.1:3128/path"),
        ("--proxy-user", f"me:{SECRET}"),
        ("--proxy", f"http://me:{SECRET}@127.0.0.1:1", "--resolve", "localhost:80:127.0.0.1"),
        ("--requests-per-connection", "0"),
        ("--requests-per-connection", "5", "--no-keepalive"),
        ("--connection-age", "5s", "--http2"),
        ("--follow", "2", "--http2"),
    ],
)
def test_what_is_no_way_is_refused_without_a_password(said, typed):
    done = said("load", "http://localhost/", *typed, "-n", "1")
    assert (done.status, done.out) == (2, "")
    assert SECRET not in done.err


def test_the_password_of_a_proxy_is_not_sent_through_its_tunnel(said):
    typed = ("-x", "http://127.0.0.1:3128", "-H", "proxy-authorization: Basic eDp5")
    done = said("load", "https://127.0.0.1:9/", *typed, "-n", "1")
    assert done.status == 2
    assert "through the tunnel, and not the proxy" in done.err


@pytest.mark.parametrize("typed", [("--proxy", "http://127.0.0.1:1"), ("--connect-to", ":::1")])
def test_a_unix_socket_has_no_other_way(said, typed):
    done = said("load", "unix:/run/app.sock", *typed, "-n", "1")
    assert (done.status, "leads there" in done.err) == (2, True)


@pytest.mark.parametrize("url", ["fcgi://127.0.0.1:9000/", "http://127.0.0.1:9000/"])
def test_a_proxy_is_for_http_that_it_understands(said, url):
    more = () if url.startswith("fcgi") else ("--http2",)
    done = said("load", url, *more, "-x", "http://127.0.0.1:1", "-n", "1")
    assert done.status == 2
    assert "expected HTTP/1, or HTTP/2 with TLS" in done.err


def test_what_is_typed_for_a_name_holds_for_any_host_with_a_star():
    way = Way((resolve_of("*:443:[::1]"),), (connect_to_of(":443:shop.example:8443"),))
    assert way.place("a.example", 443).host == "shop.example"
    assert Way((resolve_of("*:443:[::1]"),)).place("a.example", 443).addresses == ("::1",)
    assert way.place("a.example", 80).addresses == ()


# --- passwords --------------------------------------------------------------------------------------------


def test_user_and_password_of_a_url_are_sent_and_shown_nowhere(said, tmp_path):
    with listening(answering) as (port, seen):
        url = f"http://me:{SECRET.replace(' ', '%20')}@127.0.0.1:{port}/"
        files = [tmp_path / name for name in ("load.json", "load.html", "load.csv", "load.hlog")]
        options = ("--json", "--html", "--latencies", "--hdr-log")
        typed = [word for pair in zip(options, files, strict=True) for word in pair]
        done = said("load", url, "-n", "3", "-c", "1", *typed)
    assert {header(one, "authorization") for one in requests(seen)} == {USER}
    assert header(requests(seen)[0], "host") == f"127.0.0.1:{port}"
    told = [done.out, done.err, *(file.read_text() for file in files)]
    assert not [text for text in told if "sesame" in text or USER[6:] in text]


def test_a_password_is_not_in_the_process_list_while_the_load_runs(prony):
    with listening(answering) as (port, seen):
        url = f"http://me:opensesame@127.0.0.1:{port}/"
        process = prony.start("load", url, "-x", url, "--proxy-user", "me:opensesame", "-d", "30s")
        with ended(process):
            assert eventually(lambda: requests(seen), 20)
            line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    assert line.count(b"xxxxxxxxxxxxx@127.0.0.1") == 2
    assert b"sesame" not in line


def test_a_typed_authorization_is_sent_in_place_of_the_url_s(said):
    with listening(answering) as (port, seen):
        said("load", f"http://me:x@127.0.0.1:{port}/", "-H", "authorization: Bearer y", "-n", "1", "-c", "1")
    assert requests(seen)[0].lower().count("authorization") == 1
    assert header(requests(seen)[0], "authorization") == "Bearer y"


def test_a_comparison_shows_no_password(said):
    with listening(answering) as (port, _):
        url = f"http://me:{SECRET.replace(' ', '%20')}@127.0.0.1:{port}/"
        done = said(
            *("load", url, "--compare", url, "--pairs", "5", "-n", "5", "-c", "1"),
            *("--warmup", "0s", "--json", "-"),
        )
    assert "...@127.0.0.1" in done.out
    assert "sesame" not in done.out + done.err
    assert USER[6:] not in done.out


def test_a_protocol_without_passwords_refuses_one(said):
    done = said("load", f"fcgi://me:{SECRET.replace(' ', '')}@127.0.0.1:9000/", "-n", "1")
    assert (done.status, "sesame" in done.err) == (2, False)


# --- how long connections last ----------------------------------------------------------------------------


@pytest.mark.parametrize("loop", [("-c", "1"), ("--rate", "1000", "-c", "1", "--warmup", "0s")])
def test_a_connection_ends_after_so_many_requests(said, loop):
    with listening(answering) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}/", "-n", "100", *loop),
            *("--requests-per-connection", "10", "--json", "-"),
        )
    assert done.json["account"]["ok"] == len(requests(seen)) == 100
    counted = done.json["connections"]
    assert connections(seen) == counted["retired"] == counted["opened"] == 10
    assert (counted["reconnects"], counted["retried"], counted["connect_failures"]) == (9, 0, 0)


def test_the_report_says_how_many_connections_ended_at_their_limit(said, reference):
    done = said("load", reference, "-n", "30", "-c", "1", "--requests-per-connection", "10")
    assert "3 connections ended at the limit that was set for them" in done.out


@pytest.mark.parametrize("loop", [("-c", "1"), ("--rate", "100", "--warmup", "0s")])
def test_a_connection_ends_after_so_long(said, loop):
    with listening(answering) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}/", *loop, "-d", "1s"),
            *("--connection-age", "200ms", "--json", "-"),
        )
    assert done.json["account"]["scheduled"] == done.json["account"]["ok"]
    assert 4 <= connections(seen) <= 7
    assert 3 <= done.json["connections"]["retired"] <= 6


def test_an_idle_connection_that_is_too_old_is_not_used_again(said):
    with listening(answering) as (port, seen):
        done = said(
            *("load", f"http://127.0.0.1:{port}/", "--rate", "4", "-n", "4", "--connection-age", "100ms"),
            *("--warmup", "0s", "--json", "-"),
        )
    assert (done.json["account"]["ok"], connections(seen)) == (4, 4)
    assert done.json["connections"]["retired"] == 3


# --- proxies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_option", [True, False])
def test_a_proxy_is_asked_for_the_whole_url(said, tmp_path, by_option):
    password = SECRET.replace(" ", "%20")
    with listening(answering) as (port, seen):
        proxy = f"http://127.0.0.1:{port}" if by_option else f"http://me:{password}@127.0.0.1:{port}"
        user = ("--proxy-user", f"me:{SECRET}") if by_option else ()
        out = tmp_path / "load.json"
        done = said("load", "http://localhost:81/cart?n=1", "-x", proxy, *user, "-n", "2", "--json", out)
    assert {one.split("\r\n")[0] for one in requests(seen)} == {"GET http://localhost:81/cart?n=1 HTTP/1.1"}
    assert {header(one, "host") for one in requests(seen)} == {"localhost:81"}
    assert {header(one, "proxy-authorization") for one in requests(seen)} == {USER}
    assert f"localhost:81 through the proxy 127.0.0.1:{port}" in done.out
    told = done.out + done.err + out.read_text()
    assert "sesame" not in told
    assert USER[6:] not in told


def tunnelling(port):
    """Return what a proxy does that opens tunnels to a port of this machine."""

    def pump(source, sink):
        try:
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def handle(connection, seen):
        seen.append(head_of(connection))
        with socket.create_connection(("127.0.0.1", port)) as server:
            # A reply in pieces, with a body's length that means nothing there.
            for piece in (b"HTTP/1.1 200 Connection est", b"ablished\r\nContent-Length: 5\r\n", b"\r\n"):
                connection.sendall(piece)
            back = threading.Thread(target=pump, args=(server, connection), daemon=True)
            back.start()
            pump(connection, server)
            back.join()

    return handle


@pytest.mark.parametrize("more", [(), ("--rate", "200")])
def test_tls_goes_through_a_tunnel(said, more):
    tls = {name: (CERTIFICATES / f"server.{end}").read_text() for name, end in PEM}
    with (
        _engine.ReferenceServer(json.dumps({"tls": tls})) as server,
        listening(tunnelling(server.port)) as (port, seen),
    ):
        done = said(
            *("load", f"https://localhost:{server.port}/", "--cacert", CERTIFICATES / "ca.pem", *more),
            *("-x", f"http://me:x@127.0.0.1:{port}", "-n", "20", "-c", "2", "--json", "-"),
        )
        counts = json.loads(server.counts())
    assert done.json["account"]["ok"] == counts["requests"] == 20
    asked = requests(seen)
    assert len(asked) == counts["handshakes"] >= 1
    assert {one.split("\r\n")[0] for one in asked} == {f"CONNECT localhost:{server.port} HTTP/1.1"}
    assert all(header(one, "proxy-authorization") for one in asked)
    assert done.json["target"]["proxy"] == {
        "authority": f"localhost:{server.port}",
        "authorization": "<redacted>",
    }


def test_http2_goes_through_a_tunnel(said):
    with serving_http2(protocols=["h2"]) as server, listening(tunnelling(server.port)) as (port, seen):
        done = said(
            *("load", f"https://127.0.0.1:{server.port}/", "--http2", "--cacert", CERTIFICATES / "ca.pem"),
            *("-x", f"http://127.0.0.1:{port}", "-n", "60", "-c", "2", "--streams", "3", "--json", "-"),
        )
    assert (done.json["account"]["ok"], server.requests) == (60, 60)
    assert connections(seen) == server.connections == 2


def saying(reply):
    def handle(connection, seen):
        seen.append(head_of(connection))
        connection.sendall(reply)

    return handle


@pytest.mark.parametrize(
    ("reply", "class_of_it", "why"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "connect_refused", "the proxy answered 407"),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nno!", "connect_refused", "answered 502"),
        (b"", "connect_refused", "the proxy closed the connection before its reply"),
        (b"HTTP/1.1 200", "connect_refused", "the proxy closed the connection before its reply"),
        (b"SSH-2.0-OpenSSH\r\n", "connect_refused", "the proxy did not answer in HTTP/1"),
        (b"HTTP/1.1 200 OK\r\n\r\nSSH-2.0", "connect_refused", "bytes came behind the reply of the proxy"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000, "connect_refused", "longer than 16 KiB"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "tls", ""),
    ],
)
def test_a_proxy_that_opens_no_tunnel_fails_the_requests_and_says_why(said, reply, class_of_it, why):
    with listening(saying(reply)) as (port, _):
        done = said(
            *("load", "https://localhost/", "-x", f"http://127.0.0.1:{port}", "-n", "2", "-c", "1"),
            *("--json", "-"),
        )
    assert done.status == 3
    assert (done.json["account"]["scheduled"], done.json["account"][class_of_it]) == (2, 2)
    assert why in done.json["errors"][0]["detail"]


def test_a_proxy_that_says_nothing_is_given_up(said):
    def silent(connection, seen):
        seen.append(head_of(connection))
        connection.recv(1)

    with listening(silent) as (port, _):
        done = said(
            *("load", "https://localhost/", "-x", f"http://127.0.0.1:{port}", "-n", "1", "-c", "1"),
            *("--timeout", "300ms", "--json", "-"),
        )
    assert done.json["account"]["connect_timed_out"] == 1
    assert "the proxy did not open a tunnel" in done.json["errors"][0]["detail"]


@pytest.mark.parametrize("reply", [b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", b"garbage\r\n\r\n", b""])
def test_a_proxy_that_refuses_a_plain_request_is_a_failed_reply(said, reply):
    with listening(saying(reply)) as (port, _):
        done = said(
            *("load", "http://localhost/", "-x", f"http://127.0.0.1:{port}", "-n", "2", "-c", "1"),
            *("--json", "-"),
        )
    assert (done.status, done.json["account"]["ok"], done.json["account"]["scheduled"]) == (3, 0, 2)

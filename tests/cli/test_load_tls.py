"""`prony load https://...`: who is believed, what is shown, what is refused."""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from prony import _engine

CERTIFICATES = Path(__file__).parents[1] / "certificates"
CA = str(CERTIFICATES / "ca.pem")


def pem(name):
    return (CERTIFICATES / name).read_text()


@pytest.fixture
def secure(request):
    """A reference server with TLS; its certificate's name and more of its config are the test's parameter."""
    certificate, more = getattr(request, "param", ("server", {}))
    tls = {"certificate": pem(f"{certificate}.pem"), "key": pem("server.key")}
    with _engine.ReferenceServer(json.dumps({"tls": tls | more})) as server:
        yield server


def url(server, host="127.0.0.1"):
    return f"https://{host}:{server.port}/"


def counts(server):
    return json.loads(server.counts())


def test_a_load_over_tls_counts_its_handshakes_as_the_server_does(said, secure):
    done = said("load", url(secure), "--cacert", CA, "-n", "50", "-c", "3", "--json", "-")
    assert (done.status, done.json["account"]["ok"]) == (0, 50)
    tls = done.json["tls"]
    assert counts(secure)["requests"] == 50
    assert tls["full"]["count"] + tls["resumed"]["count"] == counts(secure)["handshakes"] == 3
    assert (done.json["target"]["tls"]["verify"], tls["failed"]) == (True, 0)
    assert (tls["protocols"], tls["keys"], tls["alpn"]) == (
        {"TLS 1.3": 3},
        {"ECDSA P-256": 3},
        {"http/1.1": 3},
    )


def test_the_report_says_what_was_agreed_on(said, secure):
    done = said("load", url(secure), "--cacert", CA, "-n", "20")
    assert f"Load on 127.0.0.1:{secure.port} (TLS)" in done.out
    assert "TLS 1.3, TLS_AES_256_GCM_SHA384, key exchange by X25519" in done.out
    assert "handshakes, full" in done.out
    assert "not verified" not in done.out


def test_what_was_not_verified_is_said(said, secure):
    done = said("load", url(secure), "--insecure", "-n", "20")
    assert done.status == 0
    assert "The server's certificate was not verified." in done.out


@pytest.mark.parametrize(
    ("secure", "authority", "reason"),
    [
        (("wrong-host", {}), "ca", "for another name"),
        (("expired", {}), "ca", "has expired"),
        (("server", {}), "other-ca", "of no authority that is known here"),
    ],
    indirect=["secure"],
)
def test_a_certificate_that_does_not_fit_fails_the_load(said, secure, authority, reason):
    trusted = str(CERTIFICATES / f"{authority}.pem")
    done = said("load", url(secure), "--cacert", trusted, "-d", "200ms", "-c", "1")
    assert done.status == 3
    assert "no TLS session" in done.out
    assert reason in done.out.replace("\n", " ")
    assert counts(secure)["requests"] == 0


@pytest.mark.parametrize(("name", "status"), [("shop.test", 0), ("other.test", 3)])
def test_the_name_that_the_certificate_must_have_can_be_given(said, secure, name, status):
    done = said("load", url(secure), "--cacert", CA, "--sni", name, "-n", "5", "--timeout", "1s")
    assert done.status == status


def test_the_host_of_the_url_is_the_name(said, secure):
    done = said("load", url(secure, "localhost"), "--cacert", CA, "-n", "5", "--json", "-")
    assert done.json["target"]["tls"]["server_name"] == "localhost"
    assert done.json["workload"]["request"]["headers"] == [["Host", f"localhost:{secure.port}"]]


@pytest.mark.parametrize(("option", "taken_up"), [("--tls-resumption", True), ("--no-tls-resumption", False)])
def test_sessions_are_taken_up_again_unless_that_is_not_wanted(said, secure, option, taken_up):
    result = said(
        "load", url(secure), "--cacert", CA, "-n", "40", "-c", "1", "--no-keepalive", option, "--json", "-"
    )
    resumed = result.json["tls"]["resumed"]["count"]
    assert resumed == counts(secure)["handshakes_resumed"] == (39 if taken_up else 0)


@pytest.mark.parametrize(
    "cipher", ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"]
)
def test_a_cipher_that_is_chosen_is_the_one_that_is_spoken(said, secure, cipher):
    done = said("load", url(secure), "--cacert", CA, "-n", "9", "--tls-cipher", cipher, "--json", "-")
    assert list(done.json["tls"]["ciphers"]) == [cipher]
    assert done.json["target"]["tls"]["ciphers"] == [cipher]


def test_of_several_ciphers_only_these_are_offered(said, secure):
    names = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
    chosen = [word for name in names for word in ("--tls-cipher", name)]
    done = said("load", url(secure), "--cacert", CA, "-n", "9", *chosen, "--json", "-")
    assert list(done.json["tls"]["ciphers"]) == [names[1]]


def test_a_cipher_that_the_server_lacks_is_a_failed_handshake(said, secure):
    of_rsa = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    done = said("load", url(secure), "--cacert", CA, "-d", "200ms", "-c", "1", "--tls-cipher", of_rsa)
    assert done.status == 3
    assert "HandshakeFailure" in done.out.replace("\n", " ")


def test_a_cipher_that_does_not_exist_is_refused_with_those_that_do(said):
    done = said("load", "https://127.0.0.1:9/", "--tls-cipher", "RC4")
    assert done.status == 2
    assert "RC4" in done.err
    assert [name for name in _engine.CIPHERS if name not in done.err] == []


@pytest.mark.parametrize("secure", [("server", {"client_ca": pem("ca.pem")})], indirect=True)
def test_our_own_certificate_is_shown_to_a_server_that_wants_one(said, secure):
    own = ("--cert", str(CERTIFICATES / "client.pem"), "--key", str(CERTIFICATES / "client.key"))
    assert (
        said("load", url(secure), "--cacert", CA, *own, "-n", "9", "--json", "-").json["account"]["ok"] == 9
    )


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_another_library_on_the_other_side_counts_the_same(said, version):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            seen.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "70000")
            self.end_headers()
            self.wfile.write(b"x" * 70_000)

        def log_message(self, *arguments):
            pass

    seen = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    context.load_cert_chain(CERTIFICATES / "rsa.pem", CERTIFICATES / "rsa.key")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        target = f"https://127.0.0.1:{server.server_port}/"
        done = said("load", target, "--cacert", CA, "-n", "60", "-c", "3", "--json", "-")
        server.shutdown()
        thread.join()
    assert (done.json["account"]["ok"], len(seen)) == (60, 60)
    assert done.json["bytes"]["body_received"] == 60 * 70_000
    assert done.json["tls"]["keys"] == {"RSA 2048": 3}


@pytest.mark.parametrize(
    ("target", "options", "refusal"),
    [
        ("http", ["--cacert", CA], "`--cacert` only works with TLS"),
        ("http", ["--insecure"], "`--insecure` only works with TLS"),
        ("https", ["--insecure", "--cacert", CA], "`--insecure` and `--cacert` exclude each other"),
        ("https", ["--cert", CA], "`--cert` needs `--key`"),
        ("https", ["--key", CA], "`--key` needs `--cert`"),
        ("https", ["--cacert", "/nowhere.pem"], "`--cacert /nowhere.pem` is no file"),
        ("https", ["--tls-min", "1.1"], "1.1"),
        ("http", ["--tls-cipher", "TLS_AES_128_GCM_SHA256"], "`--tls-cipher` only works with TLS"),
        (
            "https",
            ["--tls-min", "1.3", "--tls-cipher", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            "is of TLS 1.2, and the least version is 1.3",
        ),
    ],
)
def test_options_of_tls_that_do_not_fit_are_refused(said, target, options, refusal):
    done = said("load", f"{target}://127.0.0.1:9/", *options)
    assert done.status == 2
    assert refusal in done.err


def test_a_file_without_a_certificate_is_named(said, secure):
    done = said("load", url(secure), "--cacert", str(CERTIFICATES / "server.key"), "-n", "1")
    assert done.status == 3
    assert "server.key`: no certificate in it" in done.err.replace("\n", " ")


def test_the_reference_server_speaks_tls_as_a_command(said):
    done = said("reference", "--tls-cert", CA)
    assert done.status == 2
    assert "only work together" in done.err

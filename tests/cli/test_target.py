"""What `prony load` may be pointed at: each protocol, over TCP and over a Unix socket."""

import socket
import threading
from contextlib import contextmanager

import pytest

from prony.core.errors import UsageError
from prony.engine.target import LoadTarget, target_of
from prony.model.address import AddressKind, Tls, Wire

DOCUMENT = b"Status: 200 OK\r\nContent-Length: 2\r\n\r\nok"
FASTCGI = bytes([1, 6, 0, 1, 0, len(DOCUMENT), 0, 0]) + DOCUMENT + bytes([1, 3, 0, 1, 0, 8, *[0] * 10])
REPLIES = {
    "http": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
    "fcgi": FASTCGI,
    "uwsgi": DOCUMENT,
    "scgi": DOCUMENT,
}


@contextmanager
def serving(listener, reply):
    """A server that gives each connection one reply; yields what it received."""
    seen = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                seen.append(connection.recv(65536))
                connection.sendall(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize("scheme", REPLIES)
def test_every_wire_is_loaded_over_tcp(said, scheme):
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/cart?n=1"
    with serving(listener, REPLIES[scheme]) as seen:
        done = said("load", url, "-n", "3", "-c", "1", "--no-keepalive", "--json", "-")
    assert (done.status, done.json["account"]["ok"]) == (0, 3)
    assert len(seen) == 3
    assert all(b"/cart" in one for one in seen)


@pytest.mark.parametrize("scheme", REPLIES)
def test_every_wire_is_loaded_over_a_unix_socket(said, tmp_path, scheme):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    with serving(listener, REPLIES[scheme]) as seen:
        done = said("load", f"{scheme}://unix:{tmp_path}/s:/cart?n=1", "-n", "3", "-c", "1", "--no-keepalive")
    assert done.status == 0
    assert f"Load on unix:{tmp_path}/s" in done.out.replace("\n", "")
    assert len(seen) == 3
    assert all(b"/cart" in one for one in seen)


@pytest.mark.parametrize(
    ("url", "wire", "host", "path"),
    [
        ("unix:/run/s", Wire.HTTP, "/run/s", "/"),
        ("unix:/run/s:/a?b=c:d", Wire.HTTP, "/run/s", "/a?b=c:d"),
        ("http://unix:/run/s:/a", Wire.HTTP, "/run/s", "/a"),
        ("fcgi://unix:/run/s", Wire.FASTCGI, "/run/s", "/"),
    ],
)
def test_a_unix_socket_is_written_as_nginx_writes_it(url, wire, host, path):
    assert target_of(url) == LoadTarget(wire, host, 0, path, is_unix=True)
    assert target_of(url).address(()).kind is AddressKind.UNIX


def test_a_host_that_is_called_unix_is_still_a_host():
    assert target_of("http://unix:8000/a") == LoadTarget(Wire.HTTP, "unix", 8000, "/a", name="unix:8000")


def test_tls_over_a_unix_socket_is_for_this_machine_unless_a_name_is_given():
    target = target_of("https://unix:/s:/a")
    assert target == LoadTarget(Wire.HTTP, "/s", 0, "/a", is_unix=True, certified="localhost")
    assert target.address(()).tls == Tls(server_name="localhost")
    assert target.address((), Tls(server_name="shop.test")).tls == Tls(server_name="shop.test")


def test_https_has_a_port_of_its_own_and_the_name_of_its_host():
    target = target_of("https://localhost/")
    assert (target.port, target.certified, target_of("http://localhost/").certified) == (
        443,
        "localhost",
        None,
    )


@pytest.mark.parametrize("url", ["unix:s", "unix:/", "unix:/run/", "unix:/s:a", "unix:", "ftp://unix:/s"])
def test_what_is_no_unix_socket_is_refused_with_its_form(url):
    with pytest.raises(UsageError, match=r"is not a target; .*unix:/SOCKET\[:/PATH\]"):
        target_of(url)


def test_a_socket_whose_path_the_kernel_cannot_hold_is_refused_with_its_length():
    with pytest.raises(UsageError, match="has 109 bytes; expected at most 107"):
        target_of("unix:/" + "x" * 108)


@pytest.mark.parametrize("scheme", ["fcgi", "uwsgi", "scgi"])
def test_a_wire_without_a_usual_port_needs_one(scheme):
    with pytest.raises(UsageError, match=f"expected `{scheme}://HOST:PORT"):
        target_of(f"{scheme}://127.0.0.1/")


@pytest.mark.parametrize("scheme", ["fcgi", "uwsgi", "scgi"])
def test_another_machine_is_guarded_whatever_is_spoken(scheme):
    with pytest.raises(UsageError, match="is not this machine"):
        target_of(f"{scheme}://192.0.2.1:9000/").address(())


@pytest.mark.parametrize(
    ("url", "host", "path", "name"),
    [
        ("http://0.0.0.0:8000/", "127.0.0.1", "/", None),
        ("http://[::]:8000/x", "::1", "/x", None),
        ("http://app.localhost:8000/", "localhost", "/", "app.localhost:8000"),
        ("http://[fe80::1%25eth0]:8000/", "fe80::1%eth0", "/", "[fe80::1]:8000"),
        ("http://b\u00fccher.example:8000/", "xn--bcher-kva.example", "/", "xn--bcher-kva.example:8000"),
        ("http://127.0.0.1:8000/caf\u00e9?q=\u20ac#top", "127.0.0.1", "/caf%C3%A9?q=%E2%82%AC", None),
        ("http://127.0.0.1:8000/x?", "127.0.0.1", "/x?", None),
        ("http://127.0.0.1:8000?", "127.0.0.1", "/?", None),
        ("127.0.0.1:8000/x?#top", "127.0.0.1", "/x?", None),
        ("http://127.0.0.1:8000/%C3%A9", "127.0.0.1", "/%C3%A9", None),
    ],
)
def test_what_people_type_is_what_servers_read(url, host, path, name):
    found = target_of(url)
    assert (found.host, found.path, found.name) == (host, path, name)


def test_what_is_not_ascii_is_encoded_over_a_unix_socket_too():
    assert target_of("unix:/run/app.sock:/caf\u00e9?#x").path == "/caf%C3%A9?"

"""A build reaches the hosts of the package indices, through the relay, and nothing else."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from prony.sandbox.relay import Relay


class Index(BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{self.path} {self.headers.get('Proxy-Authorization', '')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def index():
    server = HTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address
    server.shutdown()
    server.server_close()


def answered(hosts, said, proxies=None, then=b""):
    """Return what a client in the build's network gets, and what was refused."""
    with Relay(frozenset(hosts), proxies or {}) as relay, socket.create_server(("127.0.0.1", 0)) as listener:
        socket.send_fds(relay.there, [b"r"], [listener.fileno()])
        with socket.create_connection(listener.getsockname(), 5) as client:
            client.settimeout(5)
            client.sendall(said)
            got = client.recv(4096)
            if then and b" 200 " in got:
                client.sendall(then)
            while more := client.recv(4096):
                got += more
        return got.decode(), relay.refused


def test_a_tunnel_to_an_index_carries_bytes(index):
    host, port = index
    asked = f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode()
    got, refused = answered([index], asked, then=b"GET /simple/ HTTP/1.0\r\n\r\n")
    assert got.startswith("HTTP/1.1 200 ")
    assert got.rstrip().endswith("/simple/")
    assert refused == []


def test_an_address_without_tls_is_asked_for(index):
    host, port = index
    got, _ = answered([index], f"GET http://{host}:{port}/simple/six HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert got.rstrip().endswith("/simple/six")


@pytest.mark.parametrize("asked", ["CONNECT {} HTTP/1.1", "GET http://{}/ HTTP/1.1"])
def test_another_host_or_another_port_is_refused_and_named(index, asked):
    host, port = index
    got, refused = answered(
        [(host, port + 1), ("pypi.org", 443)], f"{asked.format(f'{host}:{port}')}\r\n\r\n".encode()
    )
    assert got.startswith("HTTP/1.1 403 ")
    assert refused == [f"{host}:{port}"]


@pytest.mark.parametrize(
    "asked", ["CONNECT {}:0", "GET http://{}:0/", "CONNECT {}@other:443", "CONNECT {}:443@other:443"]
)
def test_a_name_in_another_place_or_a_port_that_there_is_not_is_refused(asked):
    known = [("pypi.org", 443), ("pypi.org", 80)]
    got, refused = answered(known, f"{asked.format('pypi.org')} HTTP/1.1\r\n\r\n".encode())
    assert got.startswith("HTTP/1.1 403 ")
    assert len(refused) == 1


@pytest.mark.parametrize(
    "said",
    [
        *(b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET ftp://x/ HTTP/1.1\r\n\r\n"),
        *(b"GET http://evil\t@pypi.org/ HTTP/1.1\r\n\r\n", b"CONNECT pypi\n.org:443 HTTP/1.1\r\n\r\n"),
    ],
)
def test_what_is_no_request_of_a_proxy_is_answered(said):
    assert answered([], said)[0].split()[1] in {"400", "502"}


def test_the_users_own_proxy_is_used_in_the_users_name(index):
    proxy = "http://me:word@{}:{}".format(*index)
    got, _ = answered(
        [("mirror.example", 80)], b"GET http://mirror.example/x HTTP/1.1\r\n\r\n", {"http": proxy}
    )
    assert got.rstrip().endswith("http://mirror.example/x Basic bWU6d29yZA==")

"""A real nginx, which leaves each connection after a thousand requests, and its count of what it served."""

import contextlib
import socket
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from http2_server import CERTIFICATES

NGINX = """\
daemon off; master_process off; worker_processes 1; error_log {folder}/errors; pid {folder}/pid;
events {{ worker_connections 512; }}
http {{
  log_format one "$server_protocol $status $body_bytes_sent $request_length"; access_log {folder}/log one;
  keepalive_requests 1000; client_max_body_size 10m;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{plain} http2; root {folder}/pages; }}
  server {{ listen 127.0.0.1:{first}; root {folder}/pages; }}
  server {{
    listen 127.0.0.1:{secure} ssl http2; root {folder}/pages;
    ssl_certificate {certificates}/server.pem; ssl_certificate_key {certificates}/server.key;
  }}
}}
"""
SIZES = {"small": 11, "large": 100_000}


@dataclass
class Nginx:
    """``plain`` speaks HTTP/2 without TLS, ``secure`` with it, ``first`` HTTP/1."""

    folder: Path
    plain: int
    secure: int
    first: int

    def target(self, tls, page):
        if tls:
            return (f"https://127.0.0.1:{self.secure}/{page}", "--cacert", str(CERTIFICATES / "ca.pem"))
        return (f"http://127.0.0.1:{self.plain}/{page}",)

    def served(self):
        """Count protocol, status and bytes of the bodies of all replies."""
        lines = (self.folder / "log").read_text().splitlines()
        return Counter(tuple(line.split()[:3]) for line in lines)


def free_ports(count):
    with contextlib.ExitStack() as held:
        servers = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


@pytest.fixture
def nginx(tmp_path):
    plain, secure, first = free_ports(3)
    (tmp_path / "pages").mkdir()
    for page, size in SIZES.items():
        (tmp_path / "pages" / page).write_bytes(b"x" * size)
    ports = {"plain": plain, "secure": secure, "first": first}
    values = {"folder": tmp_path, "certificates": CERTIFICATES, **ports}
    (tmp_path / "conf").write_text(NGINX.format(**values))
    command = ["/usr/sbin/nginx", "-p", tmp_path, "-c", tmp_path / "conf"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        deadline_s = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", secure), 1):
                break
            assert process.poll() is None, (tmp_path / "errors").read_text()
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        yield Nginx(tmp_path, plain, secure, first)
    finally:
        process.terminate()
        process.wait()

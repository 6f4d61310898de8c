"""The servers that are loaded, on a CPU of their own, and what they counted."""

import http.client
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loads import SERVER_CPU, Served, served

from peers.cells import Cell

CERTIFICATES = Path(__file__).resolve().parent.parent.parent / "tests" / "certificates"
# What `return` takes; more is a file.
LARGEST_TEXT = 4096
CONF = """
daemon off; master_process off; worker_processes 1; error_log stderr crit; pid {folder}/pid;
worker_rlimit_nofile {descriptors};
events {{ worker_connections {descriptors}; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 300s; sendfile on;
  open_file_cache max=10; http2_max_concurrent_streams 1000; client_max_body_size 0;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} backlog=16384{options};
    ssl_certificate {certificates}/server.pem; ssl_certificate_key {certificates}/server.key;
    ssl_protocols TLSv1.3; ssl_conf_command Ciphersuites TLS_AES_256_GCM_SHA384;
    location / {{ default_type text/plain; {reply} }}
  }}
  server {{ listen 127.0.0.1:{status_port}; location / {{ stub_status; }} }}
}}
"""


@dataclass(frozen=True)
class Counts:
    """What a server did so far: differences of two say what a load was."""

    requests: int
    accepted: int


class Server(Protocol):
    """A server that runs."""

    port: int
    pid: int

    def counts(self) -> Counts:
        """Return what it did so far, without what was asked for this."""
        ...


@contextmanager
def server_of(cell: Cell) -> Iterator[Server]:
    """Run the cell's server within the block."""
    if cell.server == "reference":
        with served(body_bytes=cell.reply_bytes) as running:
            yield Reference(running)
    else:
        with tempfile.TemporaryDirectory(prefix="prony-bench-") as folder:
            yield from nginx(cell, Path(folder))


class Reference:
    """Prony's reference server."""

    def __init__(self, running: Served) -> None:
        self._running, self.port, self.pid = running, running.port, running.pid

    def counts(self) -> Counts:
        found = self._running.counts()
        return Counts(found["requests"], found["connections_accepted"])


class Nginx:
    """Nginx, which counts requests as they begin and connections as they are accepted."""

    def __init__(self, port: int, status_port: int, process: "subprocess.Popen[str]") -> None:
        self.port, self.pid, self._own = port, process.pid, 0
        self._status = http.client.HTTPConnection("127.0.0.1", status_port, timeout=30)

    def counts(self) -> Counts:
        self._own += 1
        self._status.request("GET", "/")
        text = self._status.getresponse().read().decode()
        found = re.search(r"^ (\d+) \d+ (\d+)", text, re.MULTILINE)
        assert found, "stub_status says three numbers"
        return Counts(int(found[2]) - self._own, int(found[1]))

    def close(self) -> None:
        """Close the connection that asks for counts."""
        self._status.close()


def nginx(cell: Cell, folder: Path) -> Iterator[Server]:
    """Run nginx in a folder of its own; yield it."""
    binary = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if binary is None:
        sys.exit("error: nginx is not installed\n\nhint: apt install nginx-light")
    port, status_port = free_ports(2)
    values = {
        "options": f"{' ssl' if cell.tls else ''}{' http2' if cell.http2 else ''}",
        "reply": reply_of(cell, folder),
        "descriptors": 16_000,
    }
    conf = folder / "nginx.conf"
    places = {"folder": folder, "certificates": CERTIFICATES, "port": port, "status_port": status_port}
    conf.write_text(CONF.format(**values, **places), encoding="utf-8")
    command = ["taskset", "-c", str(SERVER_CPU), binary, "-p", str(folder), "-c", str(conf)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(status_port, process)
            server = Nginx(port, status_port, process)
            yield server
            server.close()
        finally:
            process.terminate()


def reply_of(cell: Cell, folder: Path) -> str:
    """Return what nginx answers with, in its words."""
    if cell.reply_bytes <= LARGEST_TEXT:
        return f'return 200 "{"x" * cell.reply_bytes}";'
    folder.chmod(0o755)
    (folder / "reply").write_bytes(b"x" * cell.reply_bytes)
    return f"root {folder}; try_files /reply =404;"


def free_ports(count: int) -> list[int]:
    """Return ports that nobody has just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(port: int, process: "subprocess.Popen[str]") -> None:
    """Return when the server takes connections."""
    for _ in range(100):
        if process.poll() is not None:
            sys.exit(f"error: nginx did not start: {process.stderr.read() if process.stderr else ''}")
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"error: nginx does not listen on {port}")

"""Loads over HTTP/2 of a real nginx, which leaves each connection after a thousand requests."""

import contextlib
import json
import socket
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from http2_server import CERTIFICATES
from prony.archive import open_archive
from prony.model import Ok, Wire
from prony.study.generators import ONE_AT_A_TIME

NGINX = """\
daemon off; master_process off; worker_processes 1; error_log {folder}/errors; pid {folder}/pid;
events {{ worker_connections 512; }}
http {{
  log_format one "$server_protocol $status $body_bytes_sent $request_length"; access_log {folder}/log one;
  keepalive_requests 1000; client_max_body_size 10m;
  client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{ listen 127.0.0.1:{plain} http2; root {folder}/pages; }}
  server {{
    listen 127.0.0.1:{secure} ssl http2; root {folder}/pages;
    ssl_certificate {certificates}/server.pem; ssl_certificate_key {certificates}/server.key;
  }}
}}
"""
SIZES = {"small": 11, "large": 100_000}


@dataclass
class Nginx:
    folder: Path
    plain: int
    secure: int

    def target(self, tls, page):
        if tls:
            return (f"https://127.0.0.1:{self.secure}/{page}", "--cacert", str(CERTIFICATES / "ca.pem"))
        return (f"http://127.0.0.1:{self.plain}/{page}",)

    def served(self):
        """Count protocol, status and bytes of the bodies of all replies."""
        lines = (self.folder / "log").read_text().splitlines()
        return Counter(tuple(line.split()[:3]) for line in lines)


def free_ports():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture
def nginx(tmp_path):
    plain, secure = free_ports()
    (tmp_path / "pages").mkdir()
    for page, size in SIZES.items():
        (tmp_path / "pages" / page).write_bytes(b"x" * size)
    values = {"folder": tmp_path, "plain": plain, "secure": secure, "certificates": CERTIFICATES}
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
        yield Nginx(tmp_path, plain, secure)
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("tls", [False, True], ids=["h2c", "tls"])
@pytest.mark.parametrize(
    ("page", "load", "count"),
    [
        ("small", ("-c", "2", "--streams", "10"), 5000),
        ("large", ("-c", "2", "--streams", "10"), 2500),
        ("small", ("--rate", "2000", "--streams", "20"), 3000),
    ],
    ids=["closed", "large", "open"],
)
def test_each_request_is_counted_once_though_connections_are_left(prony, nginx, tls, page, load, count):
    done = prony("load", *nginx.target(tls, page), "--http2", *load, "-n", str(count), "--json", "-")
    assert done.status == 0, done.err
    account, connections = done.json["account"], done.json["connections"]
    assert (account["scheduled"], account["ok"]) == (count, count)
    assert nginx.served() == {("HTTP/2.0", "200", str(SIZES[page])): count}
    assert done.json["bytes"]["body_received"] == count * SIZES[page]
    assert connections["requests_sent"] == count + connections["retried"]
    assert done.json["streams"]["goaways"] >= count // 1000 - 1


def test_studies_compare_both_wires_of_a_server(prony, folder):
    done = prony(
        *("run", "--no-calibration", "--app", "hello", "--servers", "nginx-static", "--repeats", "1"),
        *("--set", "nginx-static.wire=http,http2", "--set", "nginx-static.tls=off,ecdsa", "-c", "4"),
        *("--warmup", "0s", "--duration", "500ms", "--out", "a.prony", "--force"),
        timeout_s=180,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "a.prony") as archive:
        trials = [record.trial for record in archive.trials()]
    assert all(trial.outcome == Ok() for trial in trials)
    spoken = Counter(trial.recording.spec.target.wire.kind for trial in trials)
    assert set(spoken) == {Wire.HTTP, Wire.HTTP2}
    for trial in trials:
        account = trial.recording.account
        assert account.ok == account.scheduled > 100


def test_a_load_of_a_study_has_several_streams_on_each_connection(prony, folder):
    done = prony(
        *("run", "--no-calibration", "--app", "hello", "--servers", "nginx-static", "--repeats", "1"),
        *("--set", "nginx-static.wire=http,http2", "-c", "2", "--streams", "5", "--json", "a.json"),
        *("--warmup", "0s", "--duration", "500ms", "--out", "a.prony", "--force"),
        timeout_s=180,
    )
    assert done.status == 0, done.err
    with open_archive(folder / "a.prony") as archive:
        plan, trials = archive.plan(), [record.trial for record in archive.trials()]
    (last,) = {trial.cell_id: trial for trial in trials}.values()
    assert last.recording.spec.target.wire.streams == 5
    account = last.recording.account
    assert account.ok == account.scheduled > 100
    assert last.recording.streams.wire.count == account.ok
    assert [cell.workload.streams for cell in plan.cells] == [5, 5]
    report = json.loads((folder / "a.json").read_text())
    assert [group["load"].get("streams") for group in report["groups"]] == [5]
    assert report["unmeasured"] == {"nginx-static[wire=http]+hello": ONE_AT_A_TIME}

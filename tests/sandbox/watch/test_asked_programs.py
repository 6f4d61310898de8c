"""A database, a cache and an upstream that run on this machine are found, by root and by an ordinary user."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from commands import eventually, passable_folder
from someones_service import free_port, of_init

# Users without an account, of whom nobody else has a process.
OWNER, ASKER = 60_101, 60_102

# The imports come first: an ordinary user may not be able to read this Python.
ASK = """
import dataclasses, json, os, socket, subprocess, sys
from prony.sandbox.watch import partners

uid, program, kind, where = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
partners._IDLE_S = 0.2
os.setgroups([]), os.setgid(uid), os.setuid(uid)


def by_client():
    place = ["-h", "127.0.0.1", "-P", where] if kind == "tcp" else ["-S", where]
    words = ["mariadb", "--no-defaults", "-u", "root", "--batch", "--unbuffered", "-N", *place]
    one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask():
        one.stdin.write("select benchmark(300000, sha1('x'));\\n")
        one.stdin.flush()
        assert one.stdout.readline() == "0\\n"

    return ask


def by_socket():
    one = socket.socket(socket.AF_INET if kind == "tcp" else socket.AF_UNIX)
    one.connect(("127.0.0.1", int(where)) if kind == "tcp" else where)
    request, end = {
        "redis-server": (b'EVAL "for i=1,1e7 do end" 0\\r\\n', b"\\r\\n"),
        "upstream": (b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", b"done"),
    }[program]

    def ask():
        one.sendall(request)
        reply = b""
        while not reply.endswith(end):
            reply += one.recv(4096)

    return ask


ask = by_client() if program == "mariadbd" else by_socket()
ask()
found = partners.Partners(os.getpid(), (), partners.KnownPrograms())
found.prepare()
found.open_window()
for _ in range(5):
    ask()
found.close_window()
print(json.dumps([*found.deltas(), [dataclasses.asdict(one) for one in found.programs()]]))
"""

UPSTREAM = """\
package main

import (
	"net"
	"net/http"
	"os"
	"time"
)

func handle(w http.ResponseWriter, r *http.Request) {
	for began := time.Now(); time.Since(began) < 40*time.Millisecond; {
	}
	w.Write([]byte("done"))
}

func main() {
	tcp, _ := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	unix, _ := net.Listen("unix", os.Args[2])
	os.Chmod(os.Args[2], 0o666)
	go http.Serve(tcp, http.HandlerFunc(handle))
	http.Serve(unix, http.HandlerFunc(handle))
}
"""


def redis(folder, port, path):
    at = ["--port", port, "--bind", "127.0.0.1", "--unixsocket", path, "--unixsocketperm", "777"]
    return ["redis-server", *at, "--save", "", "--dir", str(folder)]


def mariadb(folder, port, path):
    data = folder / "data"
    make = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db"]
    as_owner = ["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups"]
    trusting = "--auth-root-authentication-method=normal"
    subprocess.run([*as_owner, *make, trusting], check=True, capture_output=True, cwd=folder)
    at = [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={path}"]
    return ["mariadbd", "--no-defaults", f"--datadir={data}", *at, f"--pid-file={folder}/pid"]


def upstream(folder, port, path):
    (folder / "main.go").write_text(UPSTREAM)
    own = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    words = ["go", "build", "-o", "upstream", "main.go"]
    subprocess.run(words, check=True, capture_output=True, cwd=folder, env=own)
    return [str(folder / "upstream"), port, path]


PROGRAMS = {
    "redis-server": (redis, "cache", ("redis-server",)),
    "mariadbd": (mariadb, "database", ("mariadbd", "mariadb", "mariadb-install-db")),
    "upstream": (upstream, "service", ("go",)),
}


@pytest.fixture(
    scope="module",
    params=[
        "redis-server",
        pytest.param("mariadbd", marks=pytest.mark.slow),
        pytest.param("upstream", marks=pytest.mark.slow),
    ],
)
def program(request):
    """The name of a program that runs as a service of the machine, and where it listens."""
    start, _, needed = PROGRAMS[request.param]
    lacking = [one for one in needed if shutil.which(one) is None]
    if os.geteuid() != 0 or lacking:
        pytest.skip(f"needs {', '.join(lacking)}" if lacking else "needs root, to become other users")
    with passable_folder() as folder:
        os.chown(folder, OWNER, OWNER)
        port, path = str(free_port()), str(folder / "socket")
        with of_init(start(folder, port, path), OWNER):
            assert eventually(lambda: listens(path), timeout_s=30)
            yield request.param, {"tcp": port, "unix": path}


def listens(path):
    with socket.socket(socket.AF_UNIX) as one:
        return Path(path).exists() and one.connect_ex(path) == 0


@pytest.mark.parametrize("uid", [0, ASKER], ids=["root", "ordinary user"])
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_program_of_the_machine_is_found_with_its_role_and_its_cpu(program, kind, uid):
    name, places = program
    words = [sys.executable, "-c", ASK, str(uid), name, kind, places[kind]]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    counted, missing, found = json.loads(done.stdout)
    role = PROGRAMS[name][1]
    (one,) = [one for one in found if places[kind] in one["place"]]
    assert (one["role"], one["name"], one["connections"]) == (role, name, 1)
    assert counted[f"asked.{role}.cpu_ns"] > 50e6
    assert not any(name.startswith("asked") for name in missing)

"""A database in a container is found, at its own address and behind what leads connections into it.

Without Docker: a network of its own is all of a container that matters here.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands import eventually
from joined_networks import joined_networks
from someones_service import of_init

MACHINE, CONTAINER = "10.231.8.1", "10.231.8.2"
PORT, PUBLISHED = "5432", "15432"
ASKER = 60_104

# It has a user of its own, as in an image. A child answers, as PostgreSQL's do.
DATABASE = """
import os, socket, time

with open("/proc/self/comm", "w") as name:
    name.write("postgres")
os.setgroups([]), os.setgid(60_103), os.setuid(60_103)
listener = socket.create_server(("", 5432))
while True:
    connection, _ = listener.accept()
    if os.fork():
        connection.close()
        continue
    while connection.recv(1):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        connection.send(b"x")
    os._exit(0)
"""

# What opens the connections into the container: itself, or, in the container's network, for it.
PROXY = """
import ctypes, os, pathlib, socket, sys, threading

with open("/proc/self/comm", "w") as name:
    name.write(pathlib.Path(sys.orig_argv[0]).name)
said = dict(zip(sys.argv[1::2], sys.argv[2::2]))
listener = socket.create_server((said["-host-ip"], int(said["-host-port"])))


def copy(source, sink):
    while data := source.recv(4096):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def lead_on():
    if "-network" in said:
        assert not ctypes.CDLL(None).setns(os.open(said["-network"], os.O_RDONLY), 0)
    while True:
        client, _ = listener.accept()
        onward = socket.create_connection((said["-container-ip"], int(said["-container-port"])))
        for pair in ((client, onward), (onward, client)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


threading.Thread(target=lead_on).start()
"""

# The imports come first: an ordinary user may not be able to read this Python.
ASK = """
import dataclasses, json, os, socket, sys
from prony.sandbox.watch import partners

uid, host, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
partners._IDLE_S = 0.2
os.setgroups([]), os.setgid(uid), os.setuid(uid)
one = socket.socket()
one.connect((host, port))


def ask():
    one.sendall(b"?")
    assert one.recv(1) == b"x"


ask()
found = partners.Partners(os.getpid(), (), partners.KnownPrograms())
found.prepare()
found.open_window()
for _ in range(5):
    ask()
found.close_window()
print(json.dumps([*found.deltas(), [dataclasses.asdict(one) for one in found.programs()]]))
"""


# As Docker does it without a proxy, and Podman.
PUBLISHING = f"""
table ip published {{
    chain output {{
        type nat hook output priority -100;
        tcp dport {PUBLISHED} dnat to {CONTAINER}:{PORT}
    }}
    chain postrouting {{
        type nat hook postrouting priority 100;
        ip daddr {CONTAINER} masquerade
    }}
}}
"""


@pytest.fixture(scope="module")
def networks():
    """What runs a command on the machine, and in the container's network, where the database listens."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and iproute2: networks of its own")
    with (
        joined_networks(MACHINE, CONTAINER) as (machine, container),
        of_init([*container, sys.executable, "-c", DATABASE], 0),
    ):
        assert eventually(lambda: listens(container, PORT))
        yield machine, container


def listens(within, port):
    words = [*within, "ss", "-Hltn", f"sport = :{port}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def leads(name, within, *more, to):
    """Run what leads connections on, with the words of `docker-proxy`."""
    words = ["-proto", "tcp", "-host-ip", "0.0.0.0", "-host-port", PUBLISHED, "-container-ip", to]
    named = ["bash", "-c", f'exec -a {Path(sys.executable).with_name(name)} "$0" "$@"']
    python = [sys.executable, "-c", PROXY, *words, "-container-port", PORT, *more]
    return of_init([*within, *named, *python], 0)


def asked(within, uid, *place):
    words = [*within, sys.executable, "-c", ASK, str(uid), *place]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    counted, missing, found = json.loads(done.stdout)
    assert not any(name.startswith("asked") for name in missing)
    # Each reply takes 50 ms.
    assert 0.2e9 <= counted["asked.database.cpu_ns"] <= 1e9
    return {(one["name"], one["role"], one["place"], one["connections"]) for one in found}


@pytest.mark.parametrize("uid", [0, ASKER], ids=["root", "ordinary user"])
def test_a_database_in_a_container_is_found_at_its_address(networks, uid):
    found = asked(networks[0], uid, CONTAINER, PORT)
    assert found == {("postgres", "database", f"{CONTAINER}:{PORT}", 1)}


@pytest.mark.parametrize("uid", [0, ASKER], ids=["root", "ordinary user"])
def test_docker_proxy_is_a_part_of_the_database_behind_it(networks, uid):
    with leads("docker-proxy", networks[0], to=CONTAINER):
        assert eventually(lambda: listens(networks[0], PUBLISHED))
        found = asked(networks[0], uid, "127.0.0.1", PUBLISHED)
    assert found == {
        ("docker-proxy", "database", f"port {PUBLISHED}", 1),
        ("postgres", "database", f"{CONTAINER}:{PORT}", 1),
    }


def test_a_database_at_a_published_port_is_found_where_the_kernel_leads_there(networks):
    machine, _ = networks
    if shutil.which("nft") is None:
        pytest.skip("needs nftables")
    local = "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet"
    subprocess.run([*machine, "sh", "-c", local], check=True)
    subprocess.run([*machine, "nft", "-f", "-"], input=PUBLISHING, text=True, check=True)
    try:
        found = asked(machine, ASKER, "127.0.0.1", PUBLISHED)
    finally:
        subprocess.run([*machine, "nft", "flush", "ruleset"], check=True)
    assert found == {("postgres", "database", f"{CONTAINER}:{PORT}", 1)}


def test_a_proxy_whose_sockets_are_in_the_container_is_a_part_of_the_database(networks):
    machine, container = networks
    network = container[-1].partition("=")[2]
    with leads("rootlessport", machine, "-network", network, to="127.0.0.1"):
        assert eventually(lambda: listens(machine, PUBLISHED))
        found = asked(machine, 0, "127.0.0.1", PUBLISHED)
    assert found == {
        ("rootlessport", "database", f"port {PUBLISHED}", 1),
        ("postgres", "database", f"127.0.0.1:{PORT}", 1),
    }

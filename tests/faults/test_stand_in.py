"""The network that stands in for the machine's: what is in it, and that all is as before in the end."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lab import PLANTS, campaign
from lab.campaign import FOLDER, run_plant
from lab.planting import plan_of_plant
from lab.stand_in import PEER_PORT, StandIn, stand_in_network
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import HostError, UsageError
from prony.model.sandbox import Network, SandboxChoice
from prony.sandbox.remains import carried_over, read_sockets

FEW = {"net.ipv4.ip_local_port_range": "40000 40019", "net.ipv4.tcp_tw_reuse": "0"}
CARRIED = next(one for one in PLANTS if one.cause.name == "carried-over")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root moves to a network and back")


def network():
    return Path("/proc/thread-self/ns/net").readlink()


def connects():
    """Connect to the peer until no port is left, and return how often that went well."""
    program = f"""
import socket
count = 0
while True:
    try:
        socket.create_connection(("127.0.0.1", {PEER_PORT})).close()
    except OSError as error:
        print(count, error.errno)
        break
    count += 1
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@needs_root
@pytest.mark.parametrize("carried", [0, 12])
def test_earlier_sockets_keep_ports_from_what_is_started_there(carried):
    with stand_in_network(StandIn(FEW, carried), (0,)):
        assert carried_over(PEER_PORT, read_sockets()).time_wait == carried
        # 99, EADDRNOTAVAIL: 20 ports, less those that are kept.
        assert connects() == [20 - carried, 99]


@needs_root
def test_the_peer_answers_each_byte_and_the_machines_network_is_back_in_the_end():
    before, ports = network(), Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    with stand_in_network(StandIn(FEW), (0,)):
        assert network() != before
        with socket.create_connection(("127.0.0.1", PEER_PORT)) as asking:
            asking.sendall(b"?")
            assert asking.recv(1) == b"!"
    assert network() == before
    assert Path("/proc/sys/net/ipv4/ip_local_port_range").read_text() == ports


@needs_root
def test_a_setting_that_the_kernel_refuses_ends_it_and_the_machines_network_is_back():
    before = network()
    with (
        pytest.raises(HostError, match=r"refuses net\.ipv4\.tcp_tw_reuse"),
        stand_in_network(StandIn({"net.ipv4.tcp_tw_reuse": "9"}), (0,)),
    ):
        pass
    assert network() == before


def test_without_root_no_network_stands_in_and_the_fault_is_left_out(monkeypatch):
    monkeypatch.setattr("lab.stand_in.may_enter_networks", lambda: False)
    with pytest.raises(HostError, match="needs root"), stand_in_network(StandIn({}), (0,)):
        pass
    monkeypatch.setattr(campaign, "may_enter_networks", lambda: False)
    with pytest.raises(UsageError, match=f"`{CARRIED.name}` needs root"):
        run_plant(None, CARRIED, None)


def test_a_fault_on_the_hosts_network_changes_no_setting_of_it(plan_of):
    for cell in plan_of(CARRIED).cells:
        assert (cell.sandbox.network, cell.sandbox.sysctl) == (Network.HOST, ())
        assert cell.subject.app.environment == {"FAULTY_PEER": str(PEER_PORT)}


@pytest.fixture
def plan_of():
    known = load_catalog((FOLDER,))
    return lambda plant: plan_of_plant(plant, known, SandboxChoice(), blocks=3, seed=1)

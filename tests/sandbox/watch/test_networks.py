"""What /proc shows of other networks."""

import os

import pytest

from prony.model.address import AddressKind
from prony.sandbox.watch.networks import by_network, forwarded, own_hosts, tcp_sockets
from prony.sandbox.watch.sock_diag import Connected, Listener, packed_host

# Without what follows the inode.
ROWS = """\
   0: 00000000:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000   999        0 813 1
   1: 020012AC:1538 010012AC:A2C4 01 00000000:00000000 00:00000000 00000000   999        0 814 1
   2: 020012AC:1538 010012AC:A2C6 06 00000000:00000000 03:000009A6 00000000     0        0 0 3
"""
REST = "00000000:00000000 00:00000000 00000000   999        0"
ROWS6 = f"""\
   0: {"0" * 32}:1538 {"0" * 32}:0000 0A {REST} 815 1
   1: {"0" * 16}FFFF0000020012AC:1538 {"0" * 16}FFFF0000010012AC:A2C8 01 {REST} 816 1
"""
TRIE = """\
Main:
  +-- 172.18.0.0/16 2 0 2
     +-- 172.18.0.0/30 2 0 2
        |-- 172.18.0.0
           /16 link UNICAST
        |-- 172.18.0.2
           /32 host LOCAL
     |-- 172.18.255.255
        /32 link BROADCAST
  |-- 127.0.0.1
     /32 host LOCAL
"""
INTERFACES = """\
00000000000000000000000000000001 01 80 10 80       lo
fd000000000000000000000000000002 02 40 00 80     eth0
"""
PROXY = [
    *("/usr/bin/docker-proxy", "-proto", "tcp", "-host-ip", "0.0.0.0", "-host-port", "5433"),
    *("-container-ip", "172.18.0.2", "-container-port", "5432", "-use-listen-fd", ""),
]


def test_the_tables_of_a_network_have_its_listeners_and_its_connections():
    here, there = packed_host("172.18.0.2"), packed_host("172.18.0.1")
    assert tcp_sockets(ROWS.splitlines(), AddressKind.TCP4, 3) == (
        [Listener(AddressKind.TCP4, "0.0.0.0", 5432, 813, 0, 0, True, 999, 0, 3)],
        [Connected(here, 5432, there, 41668, 814, 3)],
    )
    listeners, connected = tcp_sockets(ROWS6.splitlines(), AddressKind.TCP6, 3)
    assert [packed_host(one.host) for one in listeners] == [bytes(16)]
    assert connected == [Connected(here, 5432, there, 41672, 816, 3)]


def test_the_addresses_of_a_network_are_those_that_others_reach_it_at():
    assert own_hosts(TRIE, INTERFACES) == ["172.18.0.2", "fd00::2"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (PROXY, (5433, "172.18.0.2", 5432)),
        ([*PROXY[:2], "udp", *PROXY[3:]], None),
        (["/usr/bin/socat", *PROXY[1:]], None),
        (PROXY[:-4], None),
        ([*PROXY[:8], "database", *PROXY[9:]], None),
        ([""], None),
        ([], None),
    ],
)
def test_what_docker_proxy_leads_on_is_read_from_its_command(words, expected):
    assert forwarded(words) == expected


def test_a_process_of_this_network_and_one_that_has_ended_are_in_no_other():
    assert by_network([os.getpid(), 1 << 30]) == {}

"""What a subject asks over its sockets, with real processes that are none of ours."""

import os
import socket
from types import SimpleNamespace

import pytest

from prony.model.address import AddressKind
from prony.model.facts import AskedProgram
from prony.sandbox.watch import partners as asked
from prony.sandbox.watch.far_ends import FarEnd, far_ends
from prony.sandbox.watch.networks import Forwarded
from prony.sandbox.watch.partners import KnownPrograms, Partners, owners, topmost
from prony.sandbox.watch.sock_diag import Connected, ConnectedUnix, Listener, SockDiag, packed_host
from someones_service import connected, free_port, service

HOST, GATEWAY = packed_host("127.0.0.1"), packed_host("172.18.0.1")
DATABASE = Listener(AddressKind.TCP4, "127.0.0.1", 5432, 90, 0, 128, uid=7)
BY_PATH = Listener(AddressKind.UNIX, "/run/db.sock", 0, 91, 0, 128, False, 7)


def ask(one, times):
    for _ in range(times):
        one.send(b"?")
        assert one.recv(1) == b"x"


def test_a_connection_leads_to_the_listener_at_its_other_end():
    tcp = [Connected(HOST, 40000, HOST, 5432, 1), Connected(HOST, 5432, HOST, 40000, 2)]
    unix = [ConnectedUnix(3, 4, ""), ConnectedUnix(4, 3, "/run/db.sock")]
    found = far_ends({1, 3}, tcp, unix, [DATABASE, BY_PATH])
    assert found == [FarEnd("port 5432", (90, 2), 7, 1), FarEnd("/run/db.sock", (91, 4), 7, 1)]


def test_what_was_accepted_or_is_within_the_subject_or_elsewhere_leads_nowhere():
    accepted = [Connected(HOST, 5432, HOST, 40000, 1), Connected(HOST, 40000, HOST, 5432, 2)]
    assert far_ends({1}, accepted, [], [DATABASE]) == []
    assert far_ends({1, 2}, accepted, [], [DATABASE]) == []
    assert far_ends({1}, [Connected(HOST, 40000, HOST, 5432, 1)], [], [DATABASE]) == []
    journal = BY_PATH._replace(host="/run/systemd/journal/stdout")
    unix = [ConnectedUnix(3, 4, ""), ConnectedUnix(4, 3, journal.host)]
    assert far_ends({3}, [], unix, [journal]) == []


def test_a_connection_elsewhere_with_the_same_ports_leads_nowhere():
    elsewhere = bytes((192, 0, 2, 7)) + bytes(12)
    here = [Connected(HOST, 40000, HOST, 5432, 8), Connected(HOST, 5432, HOST, 40000, 9)]
    assert far_ends({1}, [Connected(HOST, 40000, elsewhere, 5432, 1), *here], [], [DATABASE]) == []


def test_of_two_listeners_at_one_port_the_one_at_the_connections_address_is_meant():
    other = bytes((127, 0, 0, 2)) + bytes(12)
    tcp = [Connected(HOST, 40000, other, 5432, 1), Connected(other, 5432, HOST, 40000, 2)]
    second = DATABASE._replace(host="127.0.0.2", inode=95)
    any_address = DATABASE._replace(host="0.0.0.0", inode=96)
    assert far_ends({1}, tcp, [], [second, DATABASE])[0].inodes == (95, 2)
    assert far_ends({1}, tcp, [], [DATABASE, any_address])[0].inodes == (96, 2)


def container_end(host, network, port=5432):
    """A listener in a container, its address as sockets have it, and the end of a connection to it."""
    listener = DATABASE._replace(host="0.0.0.0", inode=100 + network, network=network)
    there = packed_host(host)
    return listener, there, Connected(GATEWAY, 40000 + network, there, port, network)


def test_a_connection_to_an_address_of_another_network_leads_to_the_listener_there():
    one, there, end = container_end("172.18.0.2", 3)
    other, elsewhere, second = container_end("172.18.0.3", 4)
    hosts = {there: 3, elsewhere: 4}
    found = far_ends({3, 4}, [end, second], [], [one, other], hosts)
    assert found == [
        FarEnd("172.18.0.2:5432", (103, 0), 7, 1, network=3),
        FarEnd("172.18.0.3:5432", (104, 0), 7, 1, network=4),
    ]
    assert far_ends({3}, [end], [], [one, other], {}) == []
    assert far_ends({3}, [end], [], [DATABASE, other], hosts) == []


def test_a_socket_that_is_held_from_outside_leads_on_within_its_network():
    listener, *_ = container_end("172.18.0.2", 3)
    tcp = [Connected(HOST, 40000, HOST, 5432, 1, 3), Connected(HOST, 5432, HOST, 40000, 2, 3)]
    assert far_ends({1}, tcp, [], [listener]) == [FarEnd("127.0.0.1:5432", (103, 2), 7, 1, network=3)]
    # The same addresses in this network, which has nobody there.
    assert far_ends({1}, [tcp[0]._replace(network=0), tcp[1]], [], [listener]) == []


def test_a_connection_whose_addresses_the_kernel_rewrites_is_known_by_its_port():
    listener, there, _ = container_end("172.18.0.2", 3)
    end = Connected(HOST, 40000, HOST, 5433, 1)
    accepted = Connected(there, 5432, GATEWAY, 40000, 2, 3)
    assert far_ends({1}, [end, accepted], [], [listener]) == [
        FarEnd("172.18.0.2:5432", (103, 2), 7, 1, network=3)
    ]
    # One to another machine; that of somebody else at the same port; and one of two.
    away = end._replace(peer_host=packed_host("192.0.2.7"))
    assert far_ends({1}, [away, accepted], [], [listener]) == []
    others = Connected(GATEWAY, 40000, there, 5432, 9)
    assert far_ends({1}, [end, others, accepted], [], [listener]) == []
    second = accepted._replace(host=packed_host("172.18.0.3"), network=4)
    both = [listener, listener._replace(network=4)]
    assert far_ends({1}, [end, accepted, second], [], both) == []


def test_a_listener_in_a_container_that_may_not_be_read_is_found_by_its_network(monkeypatch):
    monkeypatch.setattr(asked, "open_sockets", lambda _: ())
    monkeypatch.setattr(asked, "_uid", {10: 0, 11: 7, 12: 7, 13: 7}.get)
    monkeypatch.setattr(asked, "by_network", lambda pids: {3: [one for one in pids if one != 13]})
    parents = {10: 1, 11: 10, 12: 11, 13: 1}
    end = FarEnd("172.18.0.2:5432", (103, 0), 7, 1, network=3)
    assert owners(end, parents, ()) == [11]
    assert owners(end._replace(uid=8), parents, ()) == [10]
    # That of Prony's own forebears is the machine's, and of no container.
    assert owners(end._replace(uid=0), parents, {11}) == []
    assert owners(end._replace(uid=0, network=4), parents, ()) == []


def test_what_a_proxy_leads_to_that_cannot_be_seen_is_said(monkeypatch):
    where = str(free_port())
    monkeypatch.setattr(asked, "forwarded_by", lambda _: Forwarded(int(where), "192.0.2.77", 5432))
    with service(where), connected(where) as one:
        ask(one, 1)
        found = Partners(os.getpid(), (), KnownPrograms())
        found.open_window()
        found.close_window()
    assert "asked.192.0.2.77:5432" in found.deltas()[1]
    assert AskedProgram("service", "", "192.0.2.77:5432", 1) in found.programs()


def test_a_program_below_another_one_counts_with_it_alone():
    rows = [SimpleNamespace(pid=pid, parent_pid=parent) for pid, parent in ((10, 1), (11, 10), (12, 1))]
    processes = {(row.pid, 0): row for row in rows}
    assert topmost([(11, 0), (10, 0), (12, 0)], processes) == [(10, 0), (12, 0)]


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_the_cpu_of_a_service_and_of_its_children_is_counted(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(asked, "_IDLE_S", 0.1)
    where = str(free_port()) if kind == "tcp" else str(tmp_path / "service.sock")
    with service(where) as pid, connected(where) as one:
        ask(one, 2)
        found = Partners(os.getpid(), (), KnownPrograms())
        found.prepare()
        found.open_window()
        ask(one, 6)
        children = {process.pid for _, process in found.beside()}
        found.close_window()
    counted, missing = found.deltas()
    assert 0.2e9 <= counted["asked.service.cpu_ns"] <= 0.6e9, counted
    assert counted["asked.service.idle_ns"] <= counted["asked.service.cpu_ns"]
    assert not any(name.startswith("asked.port") for name in missing)
    assert pid in children
    assert len(children) == 2
    (program,) = [one for one in found.programs() if where in one.place]
    assert (program.role, program.connections) == ("service", 1)
    assert program.idle_cores is not None


def test_what_a_service_uses_without_load_is_measured_once_in_a_study(monkeypatch):
    monkeypatch.setattr(asked, "_IDLE_S", 0.1)
    where, known, waits = str(free_port()), KnownPrograms(), []
    monkeypatch.setattr(asked.time, "sleep", waits.append)
    with service(where), connected(where) as one:
        ask(one, 1)
        for _ in range(3):
            Partners(os.getpid(), (), known).prepare()
    assert waits == [0.1]


def test_a_listener_that_may_not_be_read_is_found_by_its_user(monkeypatch):
    monkeypatch.setattr(asked, "open_sockets", lambda _: ())
    monkeypatch.setattr(asked, "_uid", {10: 7, 11: 7, 12: 0}.get)
    parents = {10: 1, 11: 10, 12: 1}
    assert owners(FarEnd("port 5432", (90,), 7, 1), parents, ()) == [10]
    # Root's are everybody's, and so are one's own.
    assert owners(FarEnd("port 5432", (90,), 0, 1), parents, ()) == []
    assert owners(FarEnd("port 5432", (90,), os.getuid(), 1), parents, ()) == []


def test_a_listener_that_may_not_be_read_is_found_by_its_control_group(monkeypatch, tmp_path):
    monkeypatch.setattr(asked, "open_sockets", lambda _: ())
    monkeypatch.setattr(asked, "_uid", {10: 0, 11: 33, 12: 0}.get)
    monkeypatch.setattr(asked, "_GROUPS", (tmp_path / "none", tmp_path))
    (tmp_path / "cgroup.controllers").touch()
    of_service = tmp_path / "system.slice" / "nginx.service"
    (of_service / "inner").mkdir(parents=True)
    (of_service / "cgroup.procs").write_text("10\n")
    (of_service / "inner" / "cgroup.procs").write_text("11\n")
    parents = {1: 0, 10: 1, 11: 10, 12: 1}
    end = FarEnd("port 80", (90,), 0, 1, of_service.stat().st_ino)
    assert owners(end, parents, {1}) == [10]
    assert asked.in_group(of_service.stat().st_ino) == {10, 11}
    # Prony's own, and that of everybody.
    assert owners(end, parents, {1, 11}) == []
    assert owners(end._replace(cgroup=tmp_path.stat().st_ino), parents, {1}) == []
    assert owners(end._replace(cgroup=0), parents, {1}) == []


def test_the_kernel_says_in_which_control_group_a_listener_was_opened():
    with socket.create_server(("127.0.0.1", 0)) as one, SockDiag() as diag:
        (found,) = diag.tcp_listeners({one.getsockname()[1]})
    # 1 is the first of a hierarchy; nobody is outside of all.
    assert found.cgroup >= 1


def test_a_listener_of_init_leads_to_who_has_the_connection(monkeypatch):
    held = ((1, 90), (10, 90), (10, 91), (11, 91))
    monkeypatch.setattr(asked, "open_sockets", lambda pids: (one for one in held if one[0] in pids))
    parents = {1: 0, 10: 1, 11: 10}
    assert owners(FarEnd("port 5432", (90, 91), 7, 1), parents, {1, 10}) == [11]


def test_a_program_that_cannot_be_found_is_said(monkeypatch):
    monkeypatch.setattr(asked, "owners", lambda *_: [])
    where = str(free_port())
    with service(where), connected(where) as one:
        ask(one, 1)
        found = Partners(os.getpid(), (), KnownPrograms())
        found.open_window()
        found.close_window()
    assert f"asked.port {where}" in found.deltas()[1]
    assert AskedProgram("service", "", f"port {where}", 1) in found.programs()

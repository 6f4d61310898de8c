"""Programs of this machine that a subject asks over its sockets: the database, cache or service of its app.

What they do for it is a part of the subject, and no disturbance. Only on the host's network: in one of its
own a trial has nobody to ask but over Unix sockets. Where a program leads connections into a container, both
count, and so does a container that is asked itself. What they do meanwhile for others than the subject, more
than they did without load, counts as the subject's: nothing keeps them apart. Counters, by role, over the
window:

- ``asked.<role>.cpu_ns``: CPU time of these processes, ended children included
- ``asked.<role>.idle_ns``: what they would have used without load, as measured once before it

*Source*: sock_diag(7); proc_pid_fd(5); proc_pid_stat(5).

Gauges:

- ``downstream.connections``: connections that were opened from there, and are not the generator's
- ``downstream.port``: the port of the peer that most of them have; ``downstream.at_port``: how many
- ``downstream.waits``: those on which a reply is due, at the port that has most such;
  ``downstream.waits_port``: that port
- ``downstream.sent``: segments with data that all of them sent since the first look, one a question where it
  is short

>>> program_role("postgres"), program_role("redis-server"), program_role("orders")
('database', 'cache', 'service')

>>> commonest([Outgoing(5432, 7), Outgoing(5432, 8), Outgoing(6379, 9)]), commonest([])
((5432, 2), (0, 0))
"""

import contextlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from prony.model.facts import AskedProgram
from prony.sandbox.identity import open_sockets, stat_fields
from prony.sandbox.watch.far_ends import FarEnd, far_ends
from prony.sandbox.watch.native import CompiledSource, NativeProcess
from prony.sandbox.watch.networks import all_pids, by_network, forwarded_by, other_networks
from prony.sandbox.watch.processes import Identity
from prony.sandbox.watch.sock_diag import Connected, ConnectedUnix, Listener, Outgoing, SockDiag, packed_host

DATABASE, CACHE, SERVICE = "database", "cache", "service"
_KNOWN: Mapping[str, tuple[str, ...]] = {
    DATABASE: ("postgres", "mysqld", "mariadbd", "mongod", "clickhouse", "cockroach", "oracle", "sqlservr"),
    CACHE: ("redis-server", "valkey-server", "memcached", "keydb-server", "dragonfly"),
}
# What leads connections on into containers is a part of what it leads to.
_PROXIES = ("docker-proxy", "rootlesskit", "rootlessport", "pasta")
_ROLES = (DATABASE, CACHE, SERVICE)
_ROOT = 0
# Of systemd beside version 1, and alone.
_GROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
# At 10 ms a tick of the kernel's count: to 1 % of a core.
_IDLE_S = 1.0


def program_role(program: str) -> str:
    """Return the role of a program by its name."""
    return next((role for role, names in _KNOWN.items() if program.startswith(names)), SERVICE)


# --- processes --------------------------------------------------------------------------------------------


def all_parents() -> dict[int, int]:
    """Return the parent of each process there is; 0: it has none here."""
    found = {}
    for pid in all_pids():
        if fields := stat_fields(pid):
            found[pid] = int(fields[_PARENT])
    return found


# Of the fields behind a process's name.
_PARENT, _STARTED = 1, 19


def _uid(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _above(pid: int, parents: Mapping[int, int]) -> set[int]:
    found: set[int] = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = parents.get(pid, 0)
    return found


def below(root: int, parents: Mapping[int, int]) -> set[int]:
    """Return a process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, new = {root}, [root]
    while new:
        new = [pid for parent in new for pid in children.get(parent, ()) if pid not in found]
        found.update(new)
    return found


def owners(end: FarEnd, parents: Mapping[int, int], without: Collection[int]) -> list[int]:
    """Return the first processes of the program at a far end: those that hold its listener, else the end of
    a connection, else those of its network, if that is a container's, of the user who opened the listener
    first; else what says that it leads that port on, else those of the control group in which the listener
    was opened, else those of the user who opened it, unless that is root or who asks.

    ``without``: processes that cannot be it: of Prony, and what they descend from (systemd holds listeners of
    programs that it starts on demand).
    """
    others = [pid for pid in parents if pid not in without]
    held = defaultdict[int, set[int]](set)
    for pid, inode in open_sockets(others):
        held[pid].add(inode)
    for wanted in (end.inodes[:1], end.inodes[1:]):
        holding = {pid for pid, inodes in held.items() if not inodes.isdisjoint(wanted)}
        if holding:
            return _first(holding, parents)
    inside = set(by_network(parents).get(end.network, ()))
    if inside and inside.isdisjoint(without):
        return _first({pid for pid in inside if _uid(pid) == end.uid} or inside, parents)
    if proxies := [pid for pid in others if _leads_on(pid, end)]:
        return proxies
    group = in_group(end.cgroup)
    if group and group.isdisjoint(without):
        return _first(group, parents)
    if end.uid in (None, _ROOT, os.getuid()):
        return []
    return _first({pid for pid in others if _uid(pid) == end.uid}, parents)


def _leads_on(pid: int, end: FarEnd) -> bool:
    one = forwarded_by(pid)
    return one is not None and f"port {one.entrance}" == end.name


def in_group(inode: int) -> set[int]:
    """Return the processes in the control group (v2) with this inode, which anybody may read; none in that of
    all processes, and where there is no such group.
    """
    root = next((one for one in _GROUPS if (one / "cgroup.controllers").is_file()), None)
    with contextlib.suppress(OSError):  # one that ends meanwhile
        for folder, *_ in os.walk(root) if root and inode else ():
            if folder != str(root) and Path(folder).stat().st_ino == inode:
                lists = [Path(below, "cgroup.procs") for below, *_ in os.walk(folder)]
                return {int(pid) for one in lists for pid in one.read_text().split()}
    return set()


def _first(found: Collection[int], parents: Mapping[int, int]) -> list[int]:
    return sorted(pid for pid in found if parents.get(pid) not in found)


# --- over the trials of a study ---------------------------------------------------------------------------


@dataclass(slots=True)
class KnownPrograms:
    """The programs that earlier trials of a study found: ``owners`` of listeners, by the inodes of these, and
    the CPU that they use without load in cores; null: not measured yet.
    """

    owners: dict[int, list[Identity]] = field(default_factory=dict)
    idle: dict[Identity, float | None] = field(default_factory=dict)


class _Seen(NamedTuple):
    """What a look shows of this machine's sockets; ``hosts``: the other network that has an address."""

    tcp: Sequence[Connected]
    unix: Sequence[ConnectedUnix]
    listeners: Sequence[Listener]
    hosts: Mapping[bytes, int]


def _sockets_below(*trees: CompiledSource) -> frozenset[int]:
    return frozenset(inode for _, inode in open_sockets(one.pid for tree in trees for one in tree.sample()))


class Partners:
    """Finds the programs that the processes below ``tree_pid`` ask, and counts what they use in the window.

    ``ports``: at which the subject listens for the generator.
    """

    def __init__(
        self,
        tree_pid: int,
        ports: Collection[int],
        known: KnownPrograms,
        open_diag: Callable[[], SockDiag] = SockDiag,
    ) -> None:
        self._tree = CompiledSource(tree_pid, include_root=True)
        self._ports, self._known, self._open_diag = frozenset(ports), known, open_diag
        self._found: dict[Identity, AskedProgram] = {}
        self._sampled: tuple[tuple[str, CompiledSource], ...] = ()
        self._opened: Mapping[Identity, NativeProcess] = {}
        self._used: dict[Identity, int] = {}
        self._missing: dict[str, str] = {}
        self._unseen: dict[str, int] = {}
        self._opened_ns = self._length_ns = 0

    def prepare(self) -> None:
        """Look before the load; what is new uses no CPU for it yet, so a second shows what it always uses."""
        self._look()
        known = self._known.idle
        known |= {one: known.get(one) for one in self._found}
        new = [one for one, idle in known.items() if idle is None]
        if new:
            before, began_ns = _everything(), time.monotonic_ns()
            time.sleep(_IDLE_S)
            after, length_ns = _everything(), time.monotonic_ns() - began_ns
            known |= {one: _used_ns(one, before, after) / length_ns for one in new}

    def open_window(self) -> None:
        """Look again, and begin to count."""
        self._look()
        self._opened, self._opened_ns = _everything(), time.monotonic_ns()
        self._sampled = tuple(
            (self._found[one].role, CompiledSource(one[0], include_root=True))
            for one in topmost(self._found, self._opened)
        )

    def close_window(self) -> None:
        """Look once more, and stop counting."""
        closed, self._length_ns = _everything(), time.monotonic_ns() - self._opened_ns
        self._look()
        self._used = {one: _used_ns(one, self._opened, closed) for one in topmost(self._found, closed)}

    def beside(self) -> list[tuple[str, NativeProcess]]:
        """Return the processes of what was found by the opening of the window, with their roles: of others
        nobody knows what they had used by then.
        """
        return [(role, one) for role, source in self._sampled for one in source.sample()]

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the counters by role, and why something was not found."""
        counted: dict[str, int] = {}
        for identity, used_ns in self._used.items():
            role = self._found[identity].role
            idle_ns = min(used_ns, round((self._known.idle.get(identity) or 0.0) * self._length_ns))
            for name, value in ((f"asked.{role}.cpu_ns", used_ns), (f"asked.{role}.idle_ns", idle_ns)):
                counted[name] = counted.get(name, 0) + value
        return counted, dict(self._missing)

    def programs(self) -> tuple[AskedProgram, ...]:
        """Return what was found, with how many connections to it were open at most; without a name what could
        not be.
        """
        idle = self._known.idle
        unseen = (AskedProgram(SERVICE, "", place, number) for place, number in self._unseen.items())
        return (*(replace(one, idle_cores=idle.get(of)) for of, one in self._found.items()), *unseen)

    def roots(self) -> list[int]:
        """Return the processes that were found."""
        return [pid for pid, _ in self._found]

    def connections(self) -> frozenset[int]:
        """Return the inodes of the subject's sockets."""
        return _sockets_below(self._tree)

    def _look(self) -> None:
        """Look at the subject's sockets, and at all others of this machine."""
        own = self.connections()
        try:
            with self._open_diag() as diag:
                listeners = [*diag.tcp_listeners(), *diag.unix_listeners()]
                tcp, unix = diag.tcp_connected(self._ports), diag.unix_connected()
        except OSError as error:
            self._missing["asked"] = f"the kernel does not report connections: {error.strerror or error}"
            return
        there = other_networks()
        self._follow(own, _Seen([*tcp, *there.connected], unix, [*listeners, *there.listeners], there.hosts))

    def _follow(self, own: frozenset[int], seen: _Seen) -> None:
        """Go from the subject's sockets to what it asks, and on from what is new: a service may ask a
        database. What leads connections on is followed at each look.
        """
        followed = {one for one, program in self._found.items() if not _is_proxy(program)}
        asking: list[tuple[Identity | None, list[FarEnd]]] = [(None, far_ends(own, *seen))]
        while asking:
            asker, ends = asking.pop()
            for end in ends:
                if own.isdisjoint(end.inodes):
                    found = self._add(end)
                    self._take_role(asker, found)
                    asking += [(one, self._ends_of(one, seen)) for one in set(found) - followed]
                    followed.update(found)

    def _ends_of(self, identity: Identity, seen: _Seen) -> list[FarEnd]:
        """Return where the sockets of a program lead to; of one that leads them on, where it says."""
        onward = forwarded_by(identity[0])
        if onward is None:
            return far_ends(_sockets_below(CompiledSource(identity[0], include_root=True)), *seen)
        number = self._found[identity].connections
        led = Connected(bytes(16), 0, packed_host(onward.host), onward.port, _LED)
        ends = far_ends({_LED}, [led], (), seen.listeners, seen.hosts)
        unseen = FarEnd(f"{onward.host}:{onward.port}", (0,), None, number)
        return [one._replace(connections=number) for one in ends] or [unseen]

    def _take_role(self, asker: Identity | None, found: Iterable[Identity]) -> None:
        """Give what leads connections on the role of what it leads to."""
        if asker and _is_proxy(one := self._found[asker]):
            roles = [one.role, *(self._found[other].role for other in found)]
            self._found[asker] = replace(one, role=min(roles, key=_ROLES.index))

    def _add(self, end: FarEnd) -> list[Identity]:
        """Note what is at a far end, and return it."""
        listener, known = end.inodes[0], self._known.owners
        if not known.get(listener):
            known[listener] = _identities(end)
        if not known[listener]:
            self._missing[f"asked.{end.name}"] = "the program that listens there could not be found"
            self._unseen[end.name] = max(end.connections, self._unseen.get(end.name, 0))
        for identity in known[listener]:
            self._note(identity, end)
        return known[listener]

    def _note(self, identity: Identity, end: FarEnd) -> None:
        name = _program(identity[0])
        new = AskedProgram(program_role(name), name, end.name, 0)
        one = self._found.get(identity, new)
        at = one.place if end.name in one.place.split(", ") else f"{one.place}, {end.name}"
        self._found[identity] = replace(one, place=at, connections=max(one.connections, end.connections))


# An inode that no socket has.
_LED = -1


def _is_proxy(program: AskedProgram) -> bool:
    return program.name.startswith(_PROXIES)


def _identities(end: FarEnd) -> list[Identity]:
    """Return the owners of a far end. All processes of the machine are looked at."""
    parents = all_parents()
    found = owners(end, parents, _above(os.getpid(), parents) | below(os.getpid(), parents))
    return [(pid, int(fields[_STARTED])) for pid in found if (fields := stat_fields(pid))]


def _everything() -> dict[Identity, NativeProcess]:
    """Return all processes of the machine, without the kernel's."""
    found = CompiledSource(1, include_root=True).sample()
    return {(one.pid, one.start_time_ticks): one for one in found}


def topmost(found: Iterable[Identity], processes: Mapping[Identity, NativeProcess]) -> list[Identity]:
    """Return those of ``found`` that descend from no other of them: what is below one counts with it."""
    parents = {one.pid: one.parent_pid for one in processes.values()}
    roots = list(found)
    pids = {pid for pid, _ in roots}
    return [one for one in roots if pids.isdisjoint(_above(parents.get(one[0], 0), parents))]


def _used_ns(
    root: Identity, before: Mapping[Identity, NativeProcess], after: Mapping[Identity, NativeProcess]
) -> int:
    """Return the CPU time of a process and all below it between two moments: as `tree_cpu` counts it."""
    return max(0, _tree_ns(root, after) - _tree_ns(root, before))


def _tree_ns(root: Identity, processes: Mapping[Identity, NativeProcess]) -> int:
    if root not in processes:
        return 0
    tree = below(root[0], {one.pid: one.parent_pid for one in processes.values()})
    own = (one for one in processes.values() if one.pid in tree)
    return sum(one.user_ns + one.system_ns + one.waited_ns for one in own)


# --- connections of a server to others --------------------------------------------------------------------


# The kernel visits every connection of the network: 0.6 ms for four hundred. After each read it is left
# alone for so many times as long, so that reading takes 0.2 % of a core at most.
_REST = 500


def commonest(found: Sequence[Outgoing]) -> tuple[int, int]:
    """Return the port of the peer that most connections have, and how many these are; zeros without any."""
    ports = Counter(one.peer_port for one in found).most_common(1)
    return ports[0] if ports else (0, 0)


class DownstreamGauges:
    """Reads the connections in the network of ``open_diag`` that have none of ``ports`` at either end: those
    at which the subject listens for the generator. ``own``: the inodes of its sockets, where others are in
    that network too. After a failure it does not try again.
    """

    def __init__(
        self,
        ports: Collection[int],
        open_diag: Callable[[], SockDiag],
        own: Callable[[], Set[int]] | None = None,
    ) -> None:
        self._ports, self._own = frozenset(ports), own
        self._sent_by: dict[int, int] = {}
        self._sent: int | None = None
        self._rested_ns = 0
        self._reason: str | None = None
        self._diag: SockDiag | None = None
        try:
            self._diag = open_diag()
        except OSError as error:
            self._fail(error)

    def read(self) -> dict[str, int]:
        """Return the gauges; none where there is no such connection."""
        if self._diag is None or time.monotonic_ns() < self._rested_ns:
            return {}
        began_ns = time.thread_time_ns()
        try:
            found = self._outgoing(self._diag)
        except OSError as error:
            self._fail(error)
            return {}
        self._rested_ns = time.monotonic_ns() + _REST * (time.thread_time_ns() - began_ns)
        self._count(found)
        if not found:
            return {}
        port, at_port = commonest(found)
        waits_port, waits = commonest([one for one in found if one.waits])
        return {
            "downstream.connections": len(found),
            "downstream.port": port,
            "downstream.at_port": at_port,
            "downstream.waits": waits,
            "downstream.waits_port": waits_port,
            "downstream.sent": self._sent or 0,
        }

    def _count(self, found: Sequence[Outgoing]) -> None:
        """Add what each connection sent since the last look: of one that is new, all."""
        sent = sum(max(0, one.sent - self._sent_by.get(one.inode, 0)) for one in found)
        self._sent = 0 if self._sent is None else self._sent + sent
        self._sent_by |= {one.inode: one.sent for one in found}

    def _outgoing(self, diag: SockDiag) -> list[Outgoing]:
        found = diag.tcp_outgoing(self._ports)
        if self._own is None:
            return found
        own = self._own()
        return [one for one in found if one.inode in own]

    def inodes(self) -> frozenset[int]:
        """Return the inodes of all connections that were seen so far."""
        return frozenset(self._sent_by)

    def missing(self) -> dict[str, str]:
        """Return why they could not be read."""
        return {} if self._reason is None else {"downstream.connections": self._reason}

    def close(self) -> None:
        """Stop asking."""
        if self._diag is not None:
            self._diag.close()
            self._diag = None

    def _fail(self, error: OSError) -> None:
        self._reason = f"the kernel does not report connections: {error.strerror or error}"
        self.close()

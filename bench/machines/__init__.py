"""Machines made of this one: a network each, joined by a bridge, a part of a CPU, and a clock.

Needs root, iproute2 and util-linux. They are there within the block of `joined`, and nothing of them
afterwards. The bridge is in a network of its own, so nothing of this machine's own network changes.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.sandbox import linux

_NEEDS = ("ip", "nsenter", "unshare")
_PERIOD_US = 100_000
_VERSION_1 = Path("/sys/fs/cgroup/cpu")
_VERSION_2 = Path("/sys/fs/cgroup")


def lacking() -> str | None:
    """Return why machines cannot be made here; null: they can."""
    if os.geteuid() != 0:
        return "needs root: networks of its own"
    missing = [name for name in _NEEDS if shutil.which(name) is None]
    return f"`{missing[0]}` is not installed" if missing else None


@dataclass(frozen=True)
class Machine:
    """One of them. ``ahead_s``: its CLOCK_MONOTONIC is ahead of this machine's by so much; ``group``: where
    its processes are limited; null: they are not.
    """

    name: str
    address: str
    port: str
    switch: str
    ahead_s: int = 0
    group: Path | None = None

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """Return the command that runs these words there."""
        within = ["nsenter", f"--net={_namespace(self.name)}"]
        if self.ahead_s:
            # A clock holds for children: this one waits for its child, which ends with it.
            clock = ("--time", f"--monotonic={self.ahead_s}", "--fork", "--kill-child")
            within += ["unshare", *clock]
        return [*within, *map(str, words)]

    def limit(self, pid: int) -> None:
        """Give a process, with all its threads, its machine's part of a CPU."""
        if self.group is not None:
            (self.group / "cgroup.procs").write_text(str(pid))

    def widen_ports(self) -> None:
        """Let connections from there use all ports that need no rights."""
        script = "echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range"
        subprocess.run(self.command(["sh", "-c", script]), check=True)

    def unplug(self) -> None:
        """Pull the cable out of the bridge."""
        _ip("-n", self.switch, "link", "set", self.port, "down")

    def plug_in(self) -> None:
        """Put it back."""
        _ip("-n", self.switch, "link", "set", self.port, "up")


def enter(machine: Machine) -> None:
    """Go there with this process: sockets and threads that it makes from here on are in that network."""
    linux.enter_network(_namespace(machine.name))


@contextlib.contextmanager
def joined(
    count: int, share: float | None = None, ahead_s: Sequence[int] = ()
) -> Iterator[Sequence[Machine]]:
    """Yield so many machines, each with this share of a CPU, and with the clocks of ``ahead_s``."""
    switch = f"prony-bridge-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(_network(switch))
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        found = []
        for number in range(count):
            name = f"prony-machine-{os.getpid()}-{number}"
            stack.enter_context(_network(name))
            group = None if share is None else stack.enter_context(limited_group(name, share))
            ahead = ahead_s[number] if ahead_s else 0
            one = Machine(name, f"10.231.8.{number + 1}", f"port{number}", switch, ahead, group)
            _joined(one)
            found.append(one)
        yield found


def _joined(machine: Machine) -> None:
    _ip(
        *("link", "add", machine.port, "netns", machine.switch),
        *("type", "veth", "peer", "cable", "netns", machine.name),
    )
    _ip("-n", machine.switch, "link", "set", machine.port, "master", "bridge")
    machine.plug_in()
    _ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", "cable")
    _ip("-n", machine.name, "link", "set", "cable", "up")


@contextlib.contextmanager
def _network(name: str) -> Iterator[None]:
    _ip("netns", "add", name)
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        _ip("netns", "delete", name)


@contextlib.contextmanager
def limited_group(name: str, share: float) -> Iterator[Path]:
    """Make a control group with this share of a CPU; it goes when its processes have gone."""
    is_old = _VERSION_1.is_dir()
    folder = (_VERSION_1 if is_old else _VERSION_2) / name
    folder.mkdir()
    try:
        quota_us = round(share * _PERIOD_US)
        file, text = (
            ("cpu.cfs_quota_us", f"{quota_us}") if is_old else ("cpu.max", f"{quota_us} {_PERIOD_US}")
        )
        (folder / file).write_text(text)
        yield folder
    finally:
        _removed(folder)


def _removed(folder: Path) -> None:
    end_s = time.monotonic() + 10
    while True:
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.05)
        else:
            return


def _namespace(name: str) -> str:
    return f"/run/netns/{name}"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"ip {' '.join(words)}: {done.stderr.strip()}")

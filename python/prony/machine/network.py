"""The network: the kernel's settings, interfaces with their offloads, connection tracking.

No address and no name of this machine is stored.

*Source*: Linux, Documentation/networking/ip-sysctl.rst; ethtool(8), include/uapi/linux/ethtool.h.

>>> parse_sockets("sockets: used 9\\nTCP: inuse 2 orphan 0 tw 7 alloc 3 mem 1")["TCP"]["tw"]
7
"""

import array
import fcntl
import socket
import struct
from pathlib import Path

from prony.machine import Fact, found_in, read_fact, unread
from prony.model.json_codec import Json

_SETTINGS = (
    "fs/file-max",
    "fs/nr_open",
    "kernel/numa_balancing",
    "kernel/perf_event_paranoid",
    "kernel/pid_max",
    "kernel/randomize_va_space",
    "kernel/sched_autogroup_enabled",
    "kernel/threads-max",
    "net/core/busy_poll",
    "net/core/default_qdisc",
    "net/core/netdev_budget",
    "net/core/netdev_max_backlog",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/somaxconn",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_abort_on_overflow",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_syncookies",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_wmem",
    "net/netfilter/nf_conntrack_count",
    "net/netfilter/nf_conntrack_max",
    "vm/overcommit_memory",
    "vm/swappiness",
)
# include/uapi/linux/sockios.h
_ETHTOOL = 0x8946
# include/uapi/linux/ethtool.h: the commands that read one switch each.
_OFFLOADS = {
    "rx_checksum": 0x14,
    "tx_checksum": 0x16,
    "scatter_gather": 0x18,
    "tcp_segmentation": 0x1E,
    "generic_segmentation": 0x23,
    "generic_receive": 0x2B,
}


def settings() -> Json:
    """Return the kernel's settings that decide how a server behaves under load, by the names of sysctl(8)."""
    return {name.replace("/", "."): read_fact(Path("/proc/sys") / name, spaced) for name in _SETTINGS}


def spaced(text: str) -> str:
    """Return ``text`` with single spaces."""
    return " ".join(text.split())


def interfaces() -> Json:
    """Return MTU, state and offloads of each interface, including the loopback."""
    names = [path.name for path in found_in(Path("/sys/class/net"), "*") if path.is_dir()]
    return {name: _interface(name) for name in names}


def _interface(name: str) -> Json:
    folder = Path("/sys/class/net") / name
    return {
        "mtu": read_fact(folder / "mtu", int),
        "state": read_fact(folder / "operstate"),
        "speed_mbit_per_s": read_fact(folder / "speed", _speed),
        "offloads": {offload: _offload(name, command) for offload, command in _OFFLOADS.items()},
    }


def _speed(text: str) -> int:
    speed = int(text)
    if speed < 0:
        raise ValueError("the driver does not know")
    return speed


def _offload(interface: str, command: int) -> Fact:
    """Return whether one offload is on."""
    value = array.array("I", [command, 0])
    address, _ = value.buffer_info()
    request = struct.pack("16sP16x", interface.encode(), address)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            fcntl.ioctl(control, _ETHTOOL, request)
    except OSError as error:
        return unread(f"ethtool: {error.strerror}")
    return bool(value[1])


def sockets() -> Fact:
    """Return how many sockets the host's network has now."""
    return read_fact(Path("/proc/net/sockstat"), parse_sockets)


def parse_sockets(text: str) -> Json:
    """Return counts by protocol, under the kernel's names; ``tw`` is TIME_WAIT, ``mem`` is in pages."""
    found: Json = {}
    for line in text.splitlines():
        protocol, _, rest = line.partition(":")
        words = rest.split()
        found[protocol] = {name: int(count) for name, count in zip(words[::2], words[1::2], strict=True)}
    return found

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.core.users import resolve_user
from prony.model.address import Address
from prony.model.launch import Launch
from prony.model.sandbox import Network, Placement, SandboxChoice
from prony.sandbox import open_sandbox
from prony.sandbox.journal import open_run
from prony.sandbox.linux import in_network
from prony.sandbox.watch.kernel import KernelCounters


def overflow_a_listener() -> None:
    """Connect more often than a listener that never accepts has room."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=1))
        for _ in range(8):
            client = stack.enter_context(socket.socket())
            client.settimeout(0.1)
            client.connect_ex(listener.getsockname())


@pytest.fixture
def cache() -> Iterator[Path]:
    # Not below pytest's folder, which each other run of pytest closes to all but its own user.
    with TemporaryDirectory(prefix="prony-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a network namespace of its own")
def test_a_full_listen_queue_is_counted_in_the_trials_network(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRONY_CACHE", str(cache))
    user = resolve_user()
    cpus = tuple(os.sched_getaffinity(0))
    with open_run(user) as run:
        sandbox = open_sandbox(SandboxChoice(), user, run.trial_folder("1"))
        if sandbox.facts.network == Network.HOST:
            pytest.skip(sandbox.facts.missing["network namespace"])
        # Another trial's network, and not the host's: there other programs overflow listeners too.
        other = open_sandbox(SandboxChoice(), user, run.trial_folder("2"))
        launch, placement = (
            Launch(("/bin/sleep", "600"), Address("127.0.0.1", 1)),
            Placement(cpus, cpus, True),
        )
        with sandbox.start(launch, placement) as subject, other.start(launch, placement) as neighbour:
            counters, elsewhere = KernelCounters(subject.network_pid), KernelCounters(neighbour.network_pid)
            counters.open_window()
            elsewhere.open_window()
            in_network(subject.seat.network_namespace, overflow_a_listener)
            counters.close_window()
            elsewhere.close_window()
    counted, missing = counters.deltas()
    assert counted["ListenOverflows"] > 0
    assert counted["ListenDrops"] >= counted["ListenOverflows"]
    assert counted["ActiveOpens"] == 8
    assert counted["TimeWaitAtOpen"] == 0
    assert missing == {} or set(missing.values()) == {"this kernel does not count it"}
    assert elsewhere.deltas()[0]["ListenOverflows"] == 0


def test_a_network_that_is_gone_gives_the_reason_and_no_zero() -> None:
    counters = KernelCounters(2**22)
    counters.open_window()
    counters.close_window()
    counted, missing = counters.deltas()
    assert counted == {}
    assert "cannot read `/proc/4194304/net/netstat`: No such file or directory" in missing["ListenOverflows"]


def test_a_window_that_never_closed_gives_the_reason() -> None:
    counters = KernelCounters(os.getpid())
    counters.open_window()
    counted, missing = counters.deltas()
    assert "ListenOverflows" not in counted
    assert missing["ListenOverflows"] == "the window did not open and close"


TRACKING = (
    "entries searched found new invalid ignore delete delete_list insert insert_failed drop early_drop\n"
)


def track(net: Path, entries: int, dropped: int) -> None:
    row = " ".join(f"{value:08x}" for value in (entries, *[0] * 8, dropped, 1, 2)) + "\n"
    (net / "stat").mkdir(parents=True, exist_ok=True)
    (net / "stat" / "nf_conntrack").write_text(TRACKING + row + row)


def test_what_a_firewall_had_no_room_for_is_counted_over_the_window(tmp_path: Path) -> None:
    net, most = tmp_path / "7" / "net", tmp_path / "sys" / "net" / "netfilter"
    most.mkdir(parents=True)
    (most / "nf_conntrack_max").write_text("65536\n")
    counters = KernelCounters(7, tmp_path)
    track(net, 60_000, 3)
    counters.open_window()
    track(net, 65_536, 8)
    counters.close_window()
    counted, _ = counters.deltas()
    assert {name: value for name, value in counted.items() if name.startswith("conntrack.")} == {
        "conntrack.entries": 65_536,
        "conntrack.dropped": 10,
        "conntrack.most": 65_536,
    }


def test_where_nothing_tracks_connections_there_is_nothing_to_miss(tmp_path: Path) -> None:
    (tmp_path / "7" / "net").mkdir(parents=True)
    counters = KernelCounters(7, tmp_path)
    counters.open_window()
    counters.close_window()
    counted, missing = counters.deltas()
    assert not any(name.startswith("conntrack.") for name in (*counted, *missing))

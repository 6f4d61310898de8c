import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.model import Address, Launch, Network, Placement, SandboxChoice
from prony.monitor.kernel import KernelCounters
from prony.runas import resolve_user
from prony.sandbox import open_sandbox
from prony.sandbox.journal import open_run
from prony.sandbox.linux import in_network


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

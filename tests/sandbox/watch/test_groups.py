from prony.sandbox.cgroup.types import Counters
from prony.sandbox.watch.kernel import GroupCounters


def read(*readings: dict[str, Counters]) -> GroupCounters:
    left = list(readings)
    return GroupCounters(lambda: left.pop(0))


def test_what_was_counted_in_the_window_is_told_by_process_and_counter() -> None:
    monitor = read({"server": Counters(cpu_ns=3)}, {"server": Counters(cpu_ns=7, missing={"periods": "no"})})
    monitor.open_window()
    monitor.close_window()
    found, missing = monitor.deltas()
    assert found == {"cgroup.server.cpu_ns": 4}
    assert missing["cgroup.server.periods"] == "no"


def test_a_window_that_never_closed_gives_the_reason() -> None:
    monitor = read({"server": Counters(cpu_ns=3)})
    monitor.open_window()
    found, missing = monitor.deltas()
    assert found == {}
    assert missing["cgroup.server.cpu_ns"] == "the window did not open and close"


def test_a_window_that_never_opened_gives_the_reason_and_levels_alone() -> None:
    monitor = read({"server": Counters(cpu_ns=3, memory_peak_bytes=5)})
    monitor.close_window()
    found, missing = monitor.deltas()
    assert found == {"cgroup.server.memory_peak_bytes": 5}
    assert missing["cgroup.server.cpu_ns"] == "the window did not open and close"

"""The machine's memory, as a gauge."""

from prony.sandbox.watch.machine import memory_gauge


def test_it_is_what_there_is_and_what_programs_could_get(tmp_path):
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       4000 kB\nMemFree:         100 kB\nMemAvailable:   1000 kB\n")
    gauge = memory_gauge(file)
    assert gauge.read() == {"memory_bytes": 4_096_000, "memory_available_bytes": 1_024_000}
    assert gauge.missing() == {}


def test_a_kernel_that_does_not_say_it_is_named(tmp_path):
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       4000 kB\n")
    gauge = memory_gauge(file)
    assert gauge.read() == {}
    assert set(gauge.missing().values()) == {f"`{file}` does not say MemAvailable"}
    gone = memory_gauge(tmp_path / "none")
    assert gone.read() == {}
    assert gone.missing()["memory_bytes"].endswith("No such file or directory")

from pathlib import Path

from prony.sandbox.watch.machine import frequency_gauge


def cpu(folder: Path, number: int, text: str) -> None:
    place = folder / f"cpu{number}/cpufreq"
    place.mkdir(parents=True)
    (place / "scaling_cur_freq").write_text(text)


def test_the_frequency_is_the_mean_of_the_servers_cpus(tmp_path: Path) -> None:
    for number, frequency in enumerate((1_000_000, 3_000_000, 9_000_000)):
        cpu(tmp_path, number, f"{frequency}\n")
    gauge = frequency_gauge((0, 1), tmp_path)
    assert gauge.read() == {"frequency_khz": 2_000_000}
    assert gauge.missing() == {}


def test_a_machine_that_does_not_tell_gives_the_reason(tmp_path: Path) -> None:
    gauge = frequency_gauge((0,), tmp_path)
    assert gauge.read() == {}
    path = tmp_path / "cpu0/cpufreq/scaling_cur_freq"
    assert gauge.missing() == {"frequency_khz": f"cannot read `{path}`: No such file or directory"}


def test_a_driver_that_says_unknown_gives_the_reason(tmp_path: Path) -> None:
    cpu(tmp_path, 0, "<unknown>\n")
    gauge = frequency_gauge((0,), tmp_path)
    assert gauge.read() == {}
    assert "does not say" in gauge.missing()["frequency_khz"]

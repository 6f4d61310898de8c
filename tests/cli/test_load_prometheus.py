"""`prony load --prometheus FILE`: written while the load runs and at its end, whole or not at all."""

import os

import pytest

from prony.cli.load_progress import PrometheusFile
from report.formats.test_prometheus import EVENT, read, values


@pytest.fixture
def clock():
    """A clock that the test sets."""
    return [0.0]


@pytest.fixture
def metrics(tmp_path, clock):
    return PrometheusFile(tmp_path / "load.prom", lambda: clock[0])


def ok_in(path):
    return values(read(path.read_text()), "prony_load_ended_requests_total")["ok",]


def test_it_is_written_at_once_and_then_every_five_seconds(metrics, clock, tmp_path):
    seen = []
    for second in range(12):
        clock[0] = float(second)
        metrics.on_event({**EVENT, "ok": second})
        seen.append(ok_in(tmp_path / "load.prom"))
    assert seen == [0] * 5 + [5] * 5 + [10] * 2
    assert [file.name for file in tmp_path.iterdir()] == ["load.prom"]


def test_other_events_write_nothing(metrics, tmp_path):
    metrics.on_event({"event": "window_open", "monotonic_ns": 1})
    assert not list(tmp_path.iterdir())


def test_a_load_goes_on_when_the_file_cannot_be_written_and_says_so_once(tmp_path, clock, capsys):
    metrics = PrometheusFile(tmp_path / "gone" / "load.prom", lambda: clock[0])
    for second in (0.0, 6.0, 12.0):
        clock[0] = second
        metrics.on_event(EVENT)
    assert capsys.readouterr().err.count("cannot write") == 1


def test_a_load_that_ends_with_an_error_does_not_say_that_it_runs(metrics, tmp_path):
    with pytest.raises(RuntimeError), metrics:
        metrics.on_event(EVENT)
        assert values(read((tmp_path / "load.prom").read_text()), "prony_load_running") == {(): 1}
        raise RuntimeError
    assert values(read((tmp_path / "load.prom").read_text()), "prony_load_running") == {(): 0}


def test_the_file_of_an_ended_load_agrees_with_its_json(said, folder, reference):
    result = said(
        *("load", reference, "--rate", "400", "-d", "500ms", "--prometheus", "load.prom", "--json", "-")
    ).json
    found = read((folder / "load.prom").read_text())
    requests = values(found, "prony_load_requests_total")
    assert sum(requests.values()) == result["all_requests"]
    assert requests["ok", "200"] == result["requests"][0]["requests"]
    times = found["prony_load_response_time_seconds"].samples
    summary = result["latency"]["ok"]["response_ns"]
    assert times["prony_load_response_time_seconds_count", ()] == summary["count"]
    mean_s = times["prony_load_response_time_seconds_sum", ()] / summary["count"]
    assert mean_s == pytest.approx(summary["mean"] / 1e9)


def test_what_cannot_be_replaced_is_refused_before_the_load(said, folder, reference):
    os.mkfifo(folder / "pipe")
    done = said("load", reference, "-n", "1", "--prometheus", "pipe")
    assert (done.status, done.out) == (2, "")
    assert "`--prometheus pipe` is a device or a pipe" in done.err
    assert said("load", reference, "-n", "1", "--prometheus", "no/load.prom").status == 2


def test_it_is_of_one_load(said, folder, reference):
    done = said("load", reference, "--compare", reference, "--prometheus", "load.prom")
    assert done.status == 2
    assert "`--prometheus` does not work with `--compare`" in done.err

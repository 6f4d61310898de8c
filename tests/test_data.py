"""What `import prony` offers: archives and loads as typed values."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import prony
from golden import build
from prony import _engine
from prony.core.errors import UsageError
from prony.model.recording import Recording
from prony.model.workload import OpenLoop
from prony.report.formats.as_json import reading_json

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "notebooks.md"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build.closed_study(tmp_path_factory.mktemp("data") / "closed_study.prony")


@pytest.fixture
def study(archive, own_cache):
    return prony.open(archive)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server():
    with _engine.ReferenceServer(json.dumps({"port": 0})) as server:
        yield server


# --- what it costs ----------------------------------------------------------------------------------------


def loaded_by(script):
    done = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in done.stdout.split() if name.startswith("prony") or name in ("numpy", "typer")}


def test_importing_the_package_imports_nothing_of_it():
    assert loaded_by("import prony") == {"prony"}


def test_the_version_is_printed_without_commands_or_data():
    found = loaded_by(
        "import sys, prony.__main__\nsys.argv[1:] = ['--version']\n"
        "try:\n    prony.__main__.main()\nexcept SystemExit:\n    pass"
    )
    assert found == {"prony", "prony.__main__", "prony._engine"}


def test_every_name_that_the_package_lists_is_there():
    assert [name for name in prony.__all__ if getattr(prony, name, None) is None] == []
    with pytest.raises(AttributeError, match="no attribute `opne`"):
        _ = prony.opne


# --- an archive -------------------------------------------------------------------------------------------


def test_a_study_has_the_values_of_its_report(study):
    data = reading_json(study.reading)
    assert study.plan.title == data["plan"]["title"]
    assert [cell.name for cell in study.cells] == [one["name"] for one in data["groups"][0]["cells"]]
    assert [row.cell.name for row in study.answer.rows] == [one["name"] for one in data["answer"]["subjects"]]
    assert set(study.subjects) == set(data["subjects"])


def test_trials_come_with_samples_and_histograms(study):
    records = list(study.trials())
    assert len(records) == 18
    assert all(isinstance(one.trial.recording, Recording) and one.trial.samples for one in records)
    times = prony.histogram(records[0].trial.recording)
    assert times.count == records[0].trial.recording.account.ok
    assert times.min_ns <= times.histogram.value_at_quantile(0.5) <= times.max_ns


def test_a_closed_loop_has_no_response_times(study):
    record = next(study.trials())
    assert prony.histogram(record.trial.recording, "ok_response") is None


def test_every_table_has_columns_of_one_length(study):
    for table in study.tables:
        assert len({len(values) for values in study.columns(table).values()}) == 1
    assert len(study.columns("trials")["trial_id"]) == 18


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_frame_has_the_values_of_its_table(study, library):
    pytest.importorskip("pyarrow" if library == "arrow" else library)
    frame = study.frame("trials", library)
    column = frame["block"].to_pylist() if library == "arrow" else list(frame["block"])
    assert column == study.columns("trials")["block"]


def test_a_frame_of_another_library_is_refused_by_name(study):
    with pytest.raises(UsageError, match="`R` makes no frames; expected one of `pandas`"):
        study.frame("trials", "R")


def test_a_library_that_is_not_installed_is_named_with_what_to_install(study, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="`pandas` is not installed") as found:
        study.frame("trials")
    assert found.value.hint == "pip install pandas"


def test_a_table_that_there_is_not_is_refused_with_those_that_there_are(study):
    with pytest.raises(UsageError, match="`sheet` is no table; expected one of trials, cells"):
        study.columns("sheet")


# --- a load -----------------------------------------------------------------------------------------------


def test_a_load_returns_its_recording(server):
    recording = prony.load(f"http://127.0.0.1:{server.port}/", rate=100, duration_s=0.3)
    assert isinstance(recording.spec.workload.loop, OpenLoop)
    assert recording.account.ok == 30
    assert prony.histogram(recording, "ok_response").count == 30


def test_a_load_without_a_rate_is_a_closed_loop(server):
    recording = prony.load(f"http://127.0.0.1:{server.port}/", connections=2, duration_s=0.2)
    assert recording.spec.workload.loop.connections == 2
    assert recording.account.ok > 0


def test_another_host_is_loaded_only_if_it_is_allowed():
    with pytest.raises(UsageError, match=r"192\.0\.2\.1"):
        prony.load("http://192.0.2.1/", duration_s=0.1)


# --- the guide --------------------------------------------------------------------------------------------


def test_the_code_of_the_guide_runs(archive, server, own_cache, monkeypatch, capsys):
    code = re.findall(r"^```python( \w+)?\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(code) == 6
    monkeypatch.chdir(archive.parent)
    names = {}
    for kind, text in code:
        if kind.strip() == "frames" and not has("pandas"):
            continue
        exec(text.replace(":8000/", f":{server.port}/"), names)
    out = capsys.readouterr().out
    assert "WSGI servers - 3 cells" in out
    assert re.search(r"gunicorn\+hello +1250 /s +0\.50 \(0\.50 to 0\.50\) +b", out)
    assert "18 trials count" in out
    assert "200 replies, p99" in out


def has(name):
    from importlib.util import find_spec

    return find_spec(name) is not None

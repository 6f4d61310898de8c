"""What scripts/build-wheel makes is all of Prony: in an empty environment, without Rust, it measures."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from prony.archive import open_archive
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import ExitCode
from prony.model.trial import Invalid, Ok, TrialRole

ROOT = Path(__file__).resolve().parents[2]
RUST = {"cargo", "rustc", "rustup", "rustdoc"}
PLATFORM = "manylinux2014_x86_64.manylinux_2_17_x86_64"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this clone, built."""
    command = [ROOT / "scripts" / "build-wheel", "--out", tmp_path_factory.mktemp("dist")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture
def without_rust(folder):
    """A PATH with all that this machine has, but for Rust."""
    (folder / "bin").mkdir()
    for place in map(Path, os.environ["PATH"].split(":")):
        for program in place.iterdir() if place.is_dir() else ():
            if program.name not in RUST and not (folder / "bin" / program.name).is_symlink():
                (folder / "bin" / program.name).symlink_to(program)
    return folder / "bin"


@pytest.fixture
def installed(folder, wheel, without_rust, cache):
    """Prony from the wheel, as a function of its arguments, in an environment with nothing else of ours."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST", "PYTHON"))
    }
    environment |= {"PATH": str(without_rust), "HOME": str(folder), "PRONY_CACHE": str(cache)}
    uv = Path(sys.prefix) / "bin" / "uv"
    place = folder / "environment"
    # As `pip install` does: where packages come from is what pip's settings say.
    own = environment | pip_settings()
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place], env=own, check=True)
    install = [uv, "pip", "install", "--quiet", "--python", place / "bin" / "python", wheel]
    subprocess.run(install, env=own, check=True)

    def prony(*arguments, statuses=(0,)):
        command = [place / "bin" / "prony", *arguments]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode in statuses, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return prony


def pip_settings():
    from prony.catalog.install.pip_settings import configuration_files, uv_settings

    return uv_settings(os.environ, configuration_files(os.environ, Path.home()))


def test_the_wheel_is_for_every_python_and_most_linuxes(wheel):
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert wheel.name == f"prony-{version}-cp311-abi3-{PLATFORM}.whl"


def test_the_wheel_names_no_folder_of_the_machine_that_built_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        engine = archive.read("prony/_engine.abi3.so")
    assert str(ROOT).encode() not in engine
    assert str(Path.home()).encode() + b"/" not in engine


def test_the_wheel_alone_lists_the_servers(installed):
    listed = json.loads(installed("servers", "--json"))
    assert {entry["name"] for entry in listed} == {entry.name for entry in load_catalog().entries()}


def test_the_wheel_alone_runs_the_first_study(installed, folder):
    # What the machine spoilt is no fault of the wheel: then no trial counts, which is a status of its own.
    study = ("run", "embedded-servers", "--repeats", "1", "--full")
    assert "\nAnswer\n" in installed(*study, statuses=(0, ExitCode.COULD_NOT_MEASURE))
    (file,) = folder.glob("*.prony")
    # A page is drawn, by the library and with the files that the wheel brings.
    installed("report", file.name, "--html", "page.html")
    assert "<svg" in (folder / "page.html").read_text()
    with open_archive(file) as archive:
        wanted = {cell.id for cell in archive.plan().cells}
        trials = [one.trial for one in archive.trials() if one.trial.role is TrialRole.SUBJECT]
    # Each server was started and loaded even so.
    assert {trial.cell_id for trial in trials if isinstance(trial.outcome, Ok | Invalid)} == wanted


def test_the_pages_that_messages_name_are_installed(installed, folder):
    docs = folder / "environment/share/doc/prony/docs"
    assert (docs / "reference/study-format.md").is_file()
    # Not committed: made with the wheel.
    assert (docs / "made/report-json.md").is_file()

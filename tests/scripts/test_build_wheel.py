"""scripts/build-wheel: whose licences it carries, and, in the slow layer, that a wheel is all of Prony."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from commands import cache, folder  # noqa: F401 - fixtures
from prony.archive import open_archive
from prony.catalog.schema.loader import load_catalog
from prony.errors import ExitCode
from prony.model import Invalid, Ok, TrialRole
from scripts.loading import SCRIPTS, load

wheels = load("build-wheel")
ROOT = SCRIPTS.parent
RUST = {"cargo", "rustc", "rustup", "rustdoc"}
PLATFORM = "manylinux2014_x86_64.manylinux_2_17_x86_64"
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: it names the files")


def package(name, kind="lib"):
    return {"id": name, "name": name, "targets": [{"kind": [kind]}]}


def depends(name, **kinds):
    deps = [{"pkg": other, "dep_kinds": [{"kind": kind}]} for other, kind in kinds.items()]
    return {"id": name, "deps": deps}


def test_the_licences_are_of_what_is_linked_and_not_of_what_builds_or_tests():
    metadata = {
        "packages": [
            package("prony-python"),
            *map(package, ("engine", "libc", "cc", "proptest", "syn")),
            package("derive", "proc-macro"),
        ],
        "resolve": {
            "nodes": [
                depends("prony-python", engine=None, cc="build", proptest="dev", derive=None),
                depends("engine", libc=None),
                depends("derive", syn=None),
                *map(depends, ("libc", "cc", "proptest", "syn")),
            ]
        },
    }
    assert wheels.linked_packages(metadata) == {"prony-python", "engine", "libc"}


def test_without_git_it_ends_with_one_line_before_it_builds_anything(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPTS / "build-wheel", "--out", tmp_path / "dist"],
        check=False,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [
        "error: `git` is not installed; it names the files of the wheel",
        "",
        "hint: apt-get install git",
    ]
    assert not (tmp_path / "dist").exists()


@needs_git
def test_the_documentation_is_in_the_wheels_record(tmp_path):
    wheel = tmp_path / "prony-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("prony/__init__.py", "")
        archive.writestr("prony-1.dist-info/RECORD", "prony/__init__.py,,\nprony-1.dist-info/RECORD,,\n")
    wheels.add_documentation(wheel)
    with zipfile.ZipFile(wheel) as archive:
        record = archive.read("prony-1.dist-info/RECORD").decode()
        assert {line.partition(",")[0] for line in record.splitlines()} == set(archive.namelist())
    assert "prony-1.data/data/share/doc/prony/docs/design.md" in record
    assert list(tmp_path.iterdir()) == [wheel]


@needs_git
def test_a_wheel_that_lacks_a_file_is_noticed(tmp_path):
    wheel = tmp_path / "prony-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("prony/__init__.py", "")
    lacking = wheels.missing(wheel)
    assert {"prony/catalog/servers/gunicorn.toml", "LICENSE-MIT", "LICENSE-THIRD-PARTY"} <= set(lacking)
    assert "prony/__init__.py" not in lacking


def test_a_target_without_a_standard_library_is_refused(tmp_path, capsys):
    (tmp_path / "rustc").write_text(f"#!/bin/sh\necho {tmp_path}/lib\n")
    (tmp_path / "rustc").chmod(0o755)
    with pytest.raises(SystemExit) as ended:
        wheels.check_target("aarch64-unknown-linux-gnu", {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert ended.value.code == 3
    assert "rustup target add aarch64-unknown-linux-gnu" in capsys.readouterr().err


def test_the_build_finds_rust_and_takes_pips_settings(monkeypatch):
    monkeypatch.delenv("UV_INSECURE_HOST", raising=False)
    monkeypatch.setenv("PIP_TRUSTED_HOST", "packages.example")
    environment = wheels.rust_environment()
    assert environment["UV_INSECURE_HOST"] == "packages.example"
    rust = subprocess.run(
        ["cargo", "--version"], env=environment, capture_output=True, text=True, check=False
    )
    assert rust.stdout.startswith("cargo 1.")


# --- a wheel in an empty environment ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this clone, built."""
    command = [SCRIPTS / "build-wheel", "--out", tmp_path_factory.mktemp("dist")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture
def without_rust(folder):  # noqa: F811
    """A PATH with all that this machine has, but for Rust."""
    (folder / "bin").mkdir()
    for place in map(Path, os.environ["PATH"].split(":")):
        for program in place.iterdir() if place.is_dir() else ():
            if program.name not in RUST and not (folder / "bin" / program.name).is_symlink():
                (folder / "bin" / program.name).symlink_to(program)
    return folder / "bin"


@pytest.fixture
def installed(folder, wheel, without_rust, cache):  # noqa: F811
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


@pytest.mark.slow
def test_the_wheel_is_for_every_python_and_most_linuxes(wheel):
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert wheel.name == f"prony-{version}-cp311-abi3-{PLATFORM}.whl"


@pytest.mark.slow
def test_the_wheel_names_no_folder_of_the_machine_that_built_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        engine = archive.read("prony/_engine.abi3.so")
    assert str(ROOT).encode() not in engine
    assert str(Path.home()).encode() + b"/" not in engine


@pytest.mark.slow
def test_the_wheel_alone_lists_the_servers(installed):
    listed = json.loads(installed("servers", "--json"))
    assert {entry["name"] for entry in listed} == {entry.name for entry in load_catalog().entries()}


@pytest.mark.slow
def test_the_wheel_alone_runs_the_first_study(installed, folder):  # noqa: F811
    # What the machine spoilt is no fault of the wheel: then no trial counts, which is a status of its own.
    study = ("run", "embedded-servers", "--repeats", "1", "--full")
    assert "\nAnswer\n" in installed(*study, statuses=(0, ExitCode.COULD_NOT_MEASURE))
    (file,) = folder.glob("*.prony")
    # The page beside it was drawn, by the library and with the files that the wheel brings.
    assert "<svg" in file.with_suffix(".html").read_text()
    with open_archive(file) as archive:
        wanted = {cell.id for cell in archive.plan().cells}
        trials = [one.trial for one in archive.trials() if one.trial.role is TrialRole.SUBJECT]
    # Each server was started and loaded even so.
    assert {trial.cell_id for trial in trials if isinstance(trial.outcome, Ok | Invalid)} == wanted


@pytest.mark.slow
def test_the_pages_that_messages_name_are_installed(installed, folder):  # noqa: F811
    assert (folder / "environment/share/doc/prony/docs/reference/study-format.md").is_file()

"""scripts/build-wheel: whose licences it carries, what it needs, and what a wheel may not lack."""

import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from scripts.loading import SCRIPTS, load

wheels = load("build-wheel")
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

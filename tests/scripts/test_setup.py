"""`scripts/setup` gives uv what it needs to keep an environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("scripts", "pyproject.toml", "uv.lock", "Cargo.toml", "Cargo.lock")
PIP_SETTINGS = "python/prony/catalog/install/pip_settings.py"


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_python_is_named_where_it_is_and_not_by_what_answers_for_it(tmp_path):
    clone, programs = tmp_path / "clone", tmp_path / "bin"
    (clone / PIP_SETTINGS).parent.mkdir(parents=True)
    (clone / "crates").mkdir()
    programs.mkdir()
    shutil.copyfile(ROOT / PIP_SETTINGS, clone / PIP_SETTINGS)
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, clone / name)
    program(programs / "uv", f'printf "%s\\n" "$@" >{tmp_path}/asked')
    program(programs / "python3", f'exec {sys.executable} "$@"')
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([clone / "scripts/setup"], env={**os.environ, "PATH": path}, check=True)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[asked.index("--python") + 1] == sys.executable

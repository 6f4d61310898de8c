"""Lock files come from one public index: no mirror, no credentials, no path of somebody's machine."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

from scripts.loading import load_prerequisites

ROOT = Path(__file__).parent.parent


def test_pythons_lock_names_one_registry():
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    registries = set(re.findall(r'source = \{ registry = "([^"]*)"', lock))
    assert len(registries) == 1
    (registry,) = registries
    assert registry.startswith("https://")
    assert "@" not in registry


def test_everything_is_fetched_from_one_host_with_its_hash():
    lock = (ROOT / "uv.lock").read_text(encoding="utf-8")
    files = re.findall(r'\{ url = "https://([^/"]+)[^"]*", hash = "sha256:', lock)
    assert files
    assert len(set(files)) == 1
    assert len(files) == lock.count("{ url = ")


def test_rusts_lock_names_one_registry():
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    sources = set(re.findall(r'^source = "([^"]*)"', lock, re.MULTILINE))
    assert len(sources) == 1
    assert all(source.startswith("registry+https://") for source in sources)


def test_every_locked_crate_builds_with_the_rust_that_is_asked_for():
    declared = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    least = numbers(declared["rust-version"])
    newer = {
        f"{package['name']} {package['version']}: {package['rust_version']}"
        for package in crates()
        if package["rust_version"] and numbers(package["rust_version"]) > least
    }
    assert not newer, "cargo update NAME takes the newest that does"


def numbers(version):
    return tuple(map(int, version.split(".")[:2]))


def crates():
    """Return all crates of the lock, as cargo knows them."""
    rust = load_prerequisites("rust")
    command = ["cargo", "metadata", "--format-version=1", "--locked"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=rust.environment_of(rust.find_rust()),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)["packages"]

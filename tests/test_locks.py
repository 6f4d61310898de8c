"""Lock files come from one public index: no mirror, no credentials, no path of somebody's machine."""

import re
from pathlib import Path

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

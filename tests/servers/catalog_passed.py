"""What each entry of the catalogue was when all its rows passed last: what has changed is tested often."""

import hashlib
import json
import re
from pathlib import Path

from prony.catalog import DATA
from prony.catalog.schema.loader import load_catalog

# `pytest -m slow --update-golden tests/servers/test_catalog_check.py` writes it.
PASSED = Path(__file__).parent / "catalog_passed.json"
CATALOG = load_catalog()
# Tests of one entry alone: they run when it, or they themselves, have changed.
TESTS = {"nginx-wsgi": Path(__file__).parent / "test_nginx_wsgi.py"}
CHECKED = [entry.name for entry in CATALOG.entries() if entry.name not in CATALOG.services]


def changed_entries():
    """The entries that are not what they were when all their rows passed."""
    passed = json.loads(PASSED.read_text())
    return [name for name in CHECKED if passed.get(name) != digest_of(name)]


def note_passed(name):
    passed = json.loads(PASSED.read_text()) | {name: digest_of(name)}
    PASSED.write_text(json.dumps(dict(sorted(passed.items())), indent=0) + "\n")


def digest_of(name):
    """What an entry is made of: its file (as of a year: that of today), its folder, lock and tests."""
    today = re.sub(r"-as-of-\d+$", "", name)
    places = [f"{kind}/{today}{end}" for kind in ("servers", "frontends") for end in (".toml", "/**/*")]
    files = [DATA / "locks" / f"{name}.txt", *(file for one in places for file in DATA.glob(one))]
    sum_ = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file()):
        sum_.update(f"{file.relative_to(DATA)}\n".encode() + file.read_bytes())
    if name in TESTS:
        sum_.update(TESTS[name].read_bytes())
    return sum_.hexdigest()

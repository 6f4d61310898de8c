"""`prony servers --check`: every entry passes, and what is broken is told."""

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commands import UNCLAIMED, Prony, ended, folder, passable_folder  # noqa: F401 - fixtures
from commands import shared_cache as cache  # noqa: F401 - a fixture
from commands import unclaimed_prony as prony  # noqa: F401 - a fixture
from prony.catalog.schema.loader import BUILT_IN_SERVERS, load_catalog
from prony.catalog.schema.settings import speaks_tls
from prony.check import names_to_check
from prony.check.rows import subjects_to_check
from servers.world import processes_of

pytestmark = pytest.mark.servers

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "add-a-server.md"

BROKEN = """
import sys

sys.stderr.write("looking for the flux capacitor\\nthere is no flux capacitor\\n")
sys.exit(7)
"""


def nothing_is_left(prony):  # noqa: F811
    return processes_of(prony.cache) == [] and not list((prony.cache / "run").glob("*"))


def own_entry(folder, name, script):  # noqa: F811
    """Write an entry like wsgiref's that runs ``script`` instead."""
    text = (BUILT_IN_SERVERS / "wsgiref.toml").read_text().replace('name = "wsgiref"', f'name = "{name}"')
    head, _, _ = text.partition("[files]")
    (folder / f"{name}.toml").write_text(f"{head}[files]\n\"serve.py\" = '''{script}'''\n")
    return folder / f"{name}.toml"


AT_ONCE = 3
CATALOG = load_catalog()
# What is checked by the name of each entry, and around which app.
CHECKED = [entry for entry in CATALOG.entries() if entry.name not in CATALOG.services]
AROUND = {
    "django-postgres": ["waitress", "nginx-wsgi-as-found", "flup-prefork@nginx", "mod-wsgi-express-as-found"],
    **{name: ["waitress", "uvicorn-quiet"] for name in CATALOG.apps if name.startswith("page-")},
    "flask-hello": ["waitress"],
    "falcon-hello": ["waitress"],
    "django-hello": ["waitress", "uvicorn-quiet"],
}


def lacking(prony, names):  # noqa: F811
    """Return what the system lacks for each of these names, by entry.

    Where CI runs all packages are there, and nothing is skipped for them; an old interpreter may be missing.
    """
    advice = prony("doctor", *names, "--json").json
    lacks = {item["server"]: item["missing"] for item in advice["servers"] if item["missing"]}
    if os.environ.get("CI"):
        return {name: what for name, what in lacks.items() if all("CPython" in one for one in what)}
    return lacks


@pytest.fixture(scope="module")
def module_prony(cache):  # noqa: F811
    with passable_folder() as folder:  # noqa: F811
        yield Prony(cache, folder, ("-c", UNCLAIMED))


@dataclass(frozen=True)
class Checks:
    """What became of all rows of the catalogue, and of those around each app.

    ``missed``, ``missed_by_app``: what the system lacks, by entry and app.
    """

    rows: list[dict[str, Any]]
    missed: dict[str, list[str]]
    by_app: dict[str, list[dict[str, Any]]]
    missed_by_app: dict[str, dict[str, list[str]]]
    nothing_left: bool


@pytest.fixture(scope="module")
def checks(module_prony):
    """All checks of built-in entries, three at a time: they say what works, and measure nothing.

    One more than the CPUs of a small machine: while one waits for its server, another builds.
    """

    def check(*arguments):
        done = module_prony(*("servers", "--check", "--json", *arguments), timeout_s=1800)
        assert done.out, done.err
        return done.json

    missed = lacking(module_prony, [entry.name for entry in CHECKED])
    lacks = {}

    def check_around(app):
        parts = [part for name in AROUND[app] for part in name.split("@")]
        lacks[app] = lacking(module_prony, [*parts, app])
        return [] if lacks[app] else check("--app", app, *AROUND[app])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = [pool.submit(check, *names) for names in divided(missed)]
        around = {app: pool.submit(check_around, app) for app in AROUND}
    rows = [row for part in parts for row in part.result()]
    by_app = {app: done.result() for app, done in around.items()}
    return Checks(rows, missed, by_app, lacks, nothing_is_left(module_prony))


def divided(missed):
    """Lists of about as many rows each, of all that can be checked here."""
    counts = {entry.name: len(rows_of(entry.name)) for entry in CHECKED if entry.name not in missed}
    parts = [[] for _ in range(AT_ONCE)]
    for name in sorted(counts, key=counts.get, reverse=True):
        min(parts, key=lambda part: sum(counts[one] for one in part)).append(name)
    return parts


def rows_of(name):
    """What `prony servers --check` checks of a name."""
    return list(subjects_to_check(CATALOG, names_to_check(CATALOG, [name]), CATALOG.app("hello")))


@pytest.mark.parametrize("name", [entry.name for entry in CHECKED])
def test_every_row_of_an_entry_passes(name, checks):
    if name in checks.missed:
        pytest.skip(f"needs {', '.join(checks.missed[name])}")
    wanted = names_to_check(CATALOG, [name])
    rows = [row for row in checks.rows if row["server"] in wanted]
    assert {row["server"] for row in rows} >= set(wanted) - set(checks.missed)
    for row in rows:
        what = f"{row['server']} {row['interface']} {row['wire']}"
        assert row["passed"], f"{what}: {row['stage']}: {row['reason']}\n{row['log']}"
        assert row["requests"]["ok"] > 0, what
        assert row["version"], what
        assert row["ready_s"] is not None, what
    spoken = {(row["interface"], row["wire"]) for row in rows}
    if name in CATALOG.servers:
        entry = CATALOG.server(name)
        assert {interface for interface, _ in spoken} == set(entry.interfaces)
        assert {wire for _, wire in spoken} == set(entry.wires)
    if name in CATALOG.servers or name in CATALOG.frontends:
        assert any(row["tls"] for row in rows) == speaks_tls(CATALOG.entry(name))
    if name in CATALOG.frontends:
        spoken = {(row["clients"], row["tls"] is not None) for row in rows}
        http2 = {("http2", False), ("http2", True)} if CATALOG.frontends[name].http2 else set()
        assert spoken == {("http", False), ("http", True), *http2}


@pytest.mark.parametrize("app", AROUND)
def test_every_app_is_served(app, checks):
    if checks.missed_by_app[app]:
        pytest.skip(f"needs {checks.missed_by_app[app]}")
    rows = checks.by_app[app]
    assert {row["server"] for row in rows} == set(AROUND[app])
    assert [f"{row['server']}: {row['reason']}\n{row['log']}" for row in rows if not row["passed"]] == []


def test_checks_leave_nothing(checks):
    assert checks.nothing_left


def test_a_skeleton_passes_as_it_is_written(prony):  # noqa: F811
    assert prony("servers", "--new", "mine").status == 0
    done = prony("servers", "--check", "mine", timeout_s=120)
    assert done.status == 0, done.out
    assert "All passed: 2." in done.out
    assert nothing_is_left(prony)


def test_the_guides_server_passes(prony, folder):  # noqa: F811
    (entry,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (folder / "prony.d").mkdir()
    (folder / "prony.d" / "fastwsgi.toml").write_text(entry)
    advice = prony("doctor", "fastwsgi", "--json").json
    if advice["missing"]:
        pytest.skip(f"needs {', '.join(advice['missing'])}")
    done = prony("servers", "--check", "fastwsgi", timeout_s=180)
    assert done.status == 0, done.out
    assert nothing_is_left(prony)


def test_a_broken_entry_fails_with_its_reason_and_its_last_words(prony, folder):  # noqa: F811
    file = own_entry(folder, "broken", BROKEN)
    done = prony("servers", "--check", "--catalog", file, "broken", "wsgiref", timeout_s=120)
    assert done.status == 3, done.err
    assert "failed at start" in done.out
    assert "exited with status 7" in done.out
    assert "there is no flux capacitor" in done.out
    assert "Of 2 checked, these failed: " in done.out
    assert nothing_is_left(prony)


def test_a_server_that_answers_wrongly_fails_its_contract(prony, folder):  # noqa: F811
    script = (
        "import sys\n"
        "from wsgiref.simple_server import make_server\n"
        "def app(environ, start):\n"
        "    start('200 OK', [('Content-Length', '2')])\n"
        "    return [b'no']\n"
        "make_server(sys.argv[1], int(sys.argv[2]), app).serve_forever()\n"
    )
    file = own_entry(folder, "wrong", script)
    done = prony("servers", "--check", "--catalog", file, "wrong", "--json", timeout_s=120)
    assert done.status == 3, done.err
    (row,) = done.json
    assert (row["passed"], row["stage"]) == (False, "contract")
    assert row["requests"] == {"ok": 0, "failed": 0, "failures": {}}
    assert nothing_is_left(prony)


def test_an_interrupted_check_tells_what_it_found_and_leaves_nothing(prony):  # noqa: F811
    with ended(prony.start("servers", "--check", "wsgiref", "gunicorn")) as process:
        line = ""
        while "[2/" not in line:
            line = process.stderr.readline()
            assert line, process.communicate()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "wsgiref" in out
    assert nothing_is_left(prony)

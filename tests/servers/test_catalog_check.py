"""`prony servers --check`: every entry passes, and what is broken is told."""

import os
import re
import signal
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commands import BESIDE, Prony, ended, passable_folder
from prony.catalog.schema.loader import BUILT_IN_SERVERS, load_catalog
from prony.catalog.schema.settings import speaks_tls
from prony.study.catalog_check import names_to_check, subjects_to_check
from servers.catalog_passed import CHECKED, changed_entries, note_passed
from servers.world import processes_of

pytestmark = pytest.mark.servers

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guides" / "add-a-server.md"

BROKEN = """
import sys

sys.stderr.write("looking for the flux capacitor\\nthere is no flux capacitor\\n")
sys.exit(7)
"""


def nothing_is_left(prony):
    return processes_of(prony.cache) == [] and not list((prony.cache / "run").glob("*"))


def own_entry(folder, name, script):
    """Write an entry like wsgiref's that runs ``script`` instead."""
    text = (BUILT_IN_SERVERS / "wsgiref.toml").read_text().replace('name = "wsgiref"', f'name = "{name}"')
    head, _, _ = text.partition("[files]")
    (folder / f"{name}.toml").write_text(f"{head}[files]\n\"serve.py\" = '''{script}'''\n")
    return folder / f"{name}.toml"


AT_ONCE = 3
CATALOG = load_catalog()
# Around each app.
AROUND = {
    "django-postgres": ["waitress", "nginx-wsgi-as-found", "flup-prefork@nginx", "mod-wsgi-express-as-found"],
    **{name: ["waitress", "uvicorn-quiet"] for name in CATALOG.apps if name.startswith("page-")},
    "flask-hello": ["waitress"],
    "falcon-hello": ["waitress"],
    "django-hello": ["waitress", "uvicorn-quiet"],
}
# As the slow layer checks: with a load as long as users have.
LONGER = BESIDE.replace("= 200_000_000", "= 1_000_000_000")


def single(program):
    """Return a program that takes names as they are: `gunicorn` is then that server, without its variants."""
    module = "from prony.study import catalog_check"
    patch = f"{module}\ncatalog_check.names_to_check = lambda _, names: tuple(names)\nfrom prony.cli"
    return program.replace("from prony.cli", patch, 1)


def kind_of(subject):
    """How it is installed, what it speaks to the app and to its clients, and what stands before it."""
    entry, front = CATALOG.server(subject.server), subject.frontend
    preset = entry.variants[subject.variant].settings if subject.variant else {}
    wire = subject.settings.get("wire") or preset.get("wire") or entry.wires[0]
    before = (front.entry, *sorted(front.settings.items())) if front else None
    return entry.install.kind, subject.interface, wire, "tls" in subject.settings, before


def one_of_each_kind():
    """Single servers that together have rows of every kind: those first that bring most for a row, without
    those of whose kinds others have all.
    """
    rows = defaultdict(list)
    for subject in subjects_to_check(CATALOG, names_to_check(CATALOG, []), CATALOG.app("hello")):
        rows[subject.name].append(kind_of(subject))
    missing, names = {kind for kinds in rows.values() for kind in kinds}, []
    while missing:
        names.append(max(rows, key=lambda name: len(missing.intersection(rows[name])) / len(rows[name])))
        missing.difference_update(rows[names[-1]])
    for name in tuple(names):
        others = {kind for other in names if other != name for kind in rows[other]}
        if others.issuperset(rows[name]):
            names.remove(name)
    return names


def singles_of(names):
    return names_to_check(CATALOG, names) if names else ()


def rows_of(name):
    """The rows of a single server."""
    return list(subjects_to_check(CATALOG, [name], CATALOG.app("hello")))


OFTEN = list(dict.fromkeys([*one_of_each_kind(), *singles_of(changed_entries())]))


def lacking(prony, names):
    """Return what the system lacks for each of these names, by entry.

    Where CI runs all packages are there, and nothing is skipped for them; an old interpreter may be missing.
    """
    advice = prony("doctor", *names, "--json").json
    lacks = {item["server"]: item["missing"] for item in advice["servers"] if item["missing"]}
    if os.environ.get("CI"):
        return {name: what for name, what in lacks.items() if all("CPython" in one for one in what)}
    return lacks


@pytest.fixture(scope="module")
def module_prony(cache):
    with passable_folder() as folder:
        yield Prony(cache, folder)


@dataclass(frozen=True)
class Checks:
    """What became of rows of the catalogue; ``missed``: what the system lacks, by entry."""

    rows: list[dict[str, Any]]
    missed: dict[str, list[str]]
    nothing_left: bool


def checks_of(prony, names, program):
    """Check single servers, three at a time: it says what works, and measures nothing.

    One more than the CPUs of a small machine: while one waits for its server, another builds.
    """
    missed = lacking(prony, sorted({entry for name in names for entry in entries_of(name)}))
    here = [name for name in names if missed.keys().isdisjoint(entries_of(name))]
    counts = {name: len(rows_of(name)) for name in here}
    parts = [[] for _ in range(AT_ONCE)]
    for name in sorted(counts, key=counts.get, reverse=True):
        min(parts, key=lambda part: sum(counts[one] for one in part)).append(name)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = [pool.submit(checked, prony, single(program), *part) for part in parts if part]
    return Checks([row for one in done for row in one.result()], missed, nothing_is_left(prony))


def checked(prony, program, *arguments):
    one = Prony(prony.cache, prony.folder, ("-c", program))
    done = one("servers", "--check", "--json", *arguments, timeout_s=1800)
    assert done.out, done.err
    return done.json


def entries_of(name):
    """The names of the entries of a single server, with or without a frontend."""
    return [CATALOG.entry(part).name for part in name.split("@")]


def assert_each_passes(rows):
    for row in rows:
        what = f"{row['server']} {row['interface']} {row['wire']}"
        assert row["passed"], f"{what}: {row['stage']}: {row['reason']}\n{row['log']}"
        assert row["requests"]["ok"] > 0, what
        assert row["version"], what
        assert row["ready_s"] is not None, what


# --- often: one of each kind, and what has changed ---------------------------------------------------------


@pytest.fixture(scope="module")
def often(module_prony):
    return checks_of(module_prony, OFTEN, BESIDE)


@pytest.mark.parametrize("name", OFTEN)
def test_a_row_of_each_kind_and_all_that_has_changed_pass(name, often):
    if lacks := [one for entry in entries_of(name) for one in often.missed.get(entry, ())]:
        pytest.skip(f"needs {', '.join(lacks)}")
    rows = [row for row in often.rows if row["server"] == name]
    assert len(rows) == len(rows_of(name))
    assert_each_passes(rows)


def test_these_checks_leave_nothing(often):
    assert often.nothing_left


@pytest.mark.parametrize("app", ["django-postgres", "flask-hello", "page-1k", "page-echo", "page-stream"])
def test_an_app_of_each_kind_is_served(app, module_prony):
    served_around(app, AROUND[app][:1], module_prony, BESIDE)


def served_around(app, names, prony, program):
    parts = [part for name in names for part in name.split("@")]
    if lacks := lacking(prony, [*parts, app]):
        pytest.skip(f"needs {lacks}")
    rows = checked(prony, program, "--app", app, *names)
    assert {row["server"] for row in rows} == set(names)
    assert [f"{row['server']}: {row['reason']}\n{row['log']}" for row in rows if not row["passed"]] == []


# --- seldom: every row -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checks(module_prony):
    return checks_of(module_prony, names_to_check(CATALOG, CHECKED), LONGER)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKED)
def test_every_row_of_an_entry_passes(name, checks, update_golden):
    if name in checks.missed:
        pytest.skip(f"needs {', '.join(checks.missed[name])}")
    wanted = names_to_check(CATALOG, [name])
    rows = [row for row in checks.rows if row["server"] in wanted]
    assert {row["server"] for row in rows} >= set(wanted) - set(checks.missed)
    assert_each_passes(rows)
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
    if update_golden:
        note_passed(name)


@pytest.mark.slow
@pytest.mark.parametrize("app", AROUND)
def test_every_app_is_served_by_all_of_its_servers(app, module_prony):
    served_around(app, AROUND[app], module_prony, LONGER)


@pytest.mark.slow
def test_all_checks_leave_nothing(checks):
    assert checks.nothing_left


def test_a_skeleton_passes_as_it_is_written(prony):
    assert prony("servers", "--new", "mine").status == 0
    done = prony("servers", "--check", "mine", timeout_s=120)
    assert done.status == 0, done.out
    assert "All passed: 2." in done.out
    assert nothing_is_left(prony)


@pytest.mark.slow
@pytest.mark.parametrize("interface", ["asgi", "psgi", "php", "rack", "none"])
def test_a_skeleton_of_each_interface_passes_as_it_is_written(interface, prony):
    assert prony("servers", "--new", "mine", "--interface", interface).status == 0
    done = prony("servers", "--check", "mine", timeout_s=120)
    assert done.status == 0, done.out
    assert nothing_is_left(prony)


@pytest.mark.slow
def test_the_guides_server_passes(prony, folder):
    (entry,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (folder / "prony.d").mkdir()
    (folder / "prony.d" / "fastwsgi.toml").write_text(entry)
    advice = prony("doctor", "fastwsgi", "--json").json
    if advice["missing"]:
        pytest.skip(f"needs {', '.join(advice['missing'])}")
    done = prony("servers", "--check", "fastwsgi", timeout_s=180)
    assert done.status == 0, done.out
    assert nothing_is_left(prony)


def test_a_broken_entry_fails_with_its_reason_and_its_last_words(prony, folder):
    file = own_entry(folder, "broken", BROKEN)
    done = prony("servers", "--check", "--catalog", file, "broken", "wsgiref", timeout_s=120)
    assert done.status == 3, done.err
    assert "failed at start" in done.out
    assert "exited with status 7" in done.out
    assert "there is no flux capacitor" in done.out
    assert "Of 2 checked, these failed: " in done.out
    assert nothing_is_left(prony)


def test_a_server_that_answers_wrongly_fails_its_contract(prony, folder):
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


def test_an_interrupted_check_tells_what_it_found_and_leaves_nothing(prony):
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

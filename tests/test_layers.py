"""The rules of the design that no type checker knows: who imports whom, and that every list is complete."""

import ast
import importlib
import re
import subprocess
import sys
from graphlib import TopologicalSorter

from modules import ROOT, imports, listed, modules, offered, own_imports, tree

# The rooms from below to above, one rank each: a module imports from its own room and from those before it,
# also where it imports late.
LAYERS = (
    *("core", "model", "plan"),
    *("figures", "diagnosis", "archive", "reading", "tune", "report"),
    *("machine", "sandbox", "catalog", "engine", "study"),
    *("data", "cli", "__main__"),
)
MOST_ARROWS = 90
# Folders within a room, ranked likewise; `*`: its other modules.
INNER = {
    "catalog": ("discover", "schema", "install", "launch"),
    "figures": ("statistics", "*"),
    "report": ("*", "formats", "page"),
    "cli": ("documents", "*"),
}
PURE = (
    *("core.units", "core.glossary", "core.safe_text", "core.errors", "core.metrics", "core.sysctl"),
    *("model", "plan", "figures", "diagnosis", "reading", "tune", "report"),
    *("catalog.discover", "cli.documents"),
)
DRAWS_OR_WRITES = ("report.formats", "report.page")
DOES_IO = {"os", "pathlib", "subprocess", "socket", "sqlite3", "shutil", "tempfile", "threading", "signal"}
# Who may know the compiled engine, and what for.
KNOWS_THE_ENGINE = {
    "__main__": "its version, before the commands are loaded",
    "figures.account": "the classes of the account",
    "figures.latency": "histograms",
    "catalog.install.seal": "the state of everything below a folder",
    "cli.main": "its version",
    "cli.reference": "the reference server",
    "engine.child": "the load of a trial",
    "engine.fleet.engine": "the Recordings of several machines as one",
    "engine.fleet.member": "the load of one machine of several",
    "engine.external.engine": "the histogram of what a load script counted",
    "engine.process": "a load without a study",
    "machine.fingerprint": "its version and its file",
    "sandbox.watch.native": "samples of processes",
    "plan.engine_spec": "the wires that it speaks",
    "sandbox.exchange": "the bytes of a request and a reply",
}


def layer(name):
    package = name.partition(".")[0]
    assert package in LAYERS, f"`{name}` is in no layer"
    return LAYERS.index(package)


def inner(name):
    """Return the rank of a module within its room; the lowest for the room itself."""
    room, _, rest = name.partition(".")
    folder, order = rest.partition(".")[0], INNER[room]
    return -1 if not rest else order.index(folder if folder in order else "*")


def under(name, prefixes):
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


# --- who imports whom -------------------------------------------------------------------------------------


def test_a_module_imports_only_from_its_package_and_those_below():
    above = [
        (name, module)
        for name in modules()
        for module, _ in own_imports(name)
        if module not in ("", "_engine") and layer(module) > layer(name)
    ]
    assert above == []


def test_a_folder_of_a_room_imports_only_from_itself_and_those_below():
    above = [
        (name, module)
        for name in modules()
        for module, _ in own_imports(name)
        if under(name, INNER) and under(module, (name.partition(".")[0],)) and inner(module) > inner(name)
    ]
    assert above == []


def test_every_room_has_one_rank():
    assert sorted({name.partition(".")[0] for name in modules()}) == sorted(LAYERS)


def test_there_are_few_arrows_between_rooms():
    arrows = {
        (name.partition(".")[0], module.partition(".")[0])
        for name in modules()
        for module, _ in own_imports(name)
        if module not in ("", "_engine")
    }
    assert len({(here, there) for here, there in arrows if here != there}) <= MOST_ARROWS


def test_no_files_import_each_other_in_a_circle():
    arrows = {name: {module for module, _ in own_imports(name)} - {"", name} for name in modules()}
    TopologicalSorter(arrows).prepare()


def test_pure_modules_know_no_files_processes_or_sockets():
    does = [
        (name, module)
        for name in modules()
        for module, _ in imports(name)
        if under(name, PURE) and not under(name, DRAWS_OR_WRITES) and module.partition(".")[0] in DOES_IO
    ]
    assert does == []


def test_what_is_read_and_reported_has_a_type():
    packages = ("figures", "diagnosis", "reading", "report")
    untyped = {
        name
        for name in modules()
        if under(name, packages)
        and not under(name, DRAWS_OR_WRITES)
        and any(
            (isinstance(node, ast.Name) and node.id in ("Json", "Any"))
            or (isinstance(node, ast.alias) and node.name in ("Json", "Any"))
            for node in ast.walk(tree(name))
        )
    }
    assert untyped == set()


def test_the_compiled_engine_is_known_in_few_named_places():
    knows = {
        name
        for name in modules()
        if any("_engine" in module.split(".") or imported == "_engine" for module, imported in imports(name))
    }
    assert knows == set(KNOWS_THE_ENGINE)


def test_the_library_that_draws_is_known_in_one_place():
    assert {name for name in modules() for module, _ in imports(name) if module == "vl_convert"} == {
        "report.page.figure"
    }


def test_the_library_of_the_fleet_is_known_in_one_place_and_that_of_certificates_in_another():
    cluster = "engine.fleet.cluster"
    libraries = {"dask": cluster, "distributed": cluster, "cryptography": "sandbox.certificates"}
    knows = {
        (library, name)
        for name in modules()
        for module, _ in imports(name)
        if (library := module.partition(".")[0]) in libraries
    }
    assert knows == set(libraries.items())


def test_the_command_line_is_imported_by_nobody():
    users = {name for name in modules() for module, _ in own_imports(name) if under(module, ("cli",))}
    assert users == {name for name in users if under(name, ("cli", "__main__"))}


def test_the_command_line_starts_without_the_libraries_of_its_commands():
    known = "sorted({name.partition('.')[0] for name in sys.modules})"
    script = f"import sys, prony.cli.main; prony.cli.main.app_with(); print(*{known})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(
        {"numpy", "scipy", "pydantic", "sqlite3", "vl_convert", "distributed", "dask", "cryptography"}
    )


# --- the load engine --------------------------------------------------------------------------------------

ENGINE = ROOT.parent.parent / "crates" / "prony-engine" / "src"
ENGINE_ROOMS = ("spec", "schedule", "expect", "wire", "socket", "record", "worker", "run")


def engine_imports():
    """Return what each file of the engine names of the others, without its tests: by path, without `.rs`."""
    files = {
        file.relative_to(ENGINE).with_suffix("").as_posix(): file
        for file in ENGINE.rglob("*.rs")
        if "tests" not in file.relative_to(ENGINE).with_suffix("").parts
    }
    found = {}
    for name, file in files.items():
        text = file.read_text().partition("#[cfg(test)]\nmod tests {")[0]
        paths = (path.replace("::", "/") for path in re.findall(r"\bcrate::(\w+(?:::\w+)*)", text))
        found[name] = {there for path in paths if (there := longest(path, files)) and there != name}
    return found


def longest(path, files):
    while path not in files and "/" in path:
        path = path.rpartition("/")[0]
    return path if path in files else None


def test_the_rooms_of_the_engine_have_one_rank_each_and_no_circle():
    arrows = engine_imports()
    assert len(arrows) > 60
    TopologicalSorter(arrows).prepare()
    # What all know has the lowest rank.
    rank = dict(zip(ENGINE_ROOMS, range(1, len(ENGINE_ROOMS) + 1), strict=True))
    up = [
        (here, there)
        for here, paths in arrows.items()
        for there in paths
        if rank.get(there.partition("/")[0], 0) > rank.get(here.partition("/")[0], 0) and here != "lib"
    ]
    assert up == []


# --- the map in docs/design.md ----------------------------------------------------------------------------

DESIGN = (ROOT.parent.parent / "docs" / "design.md").read_text()
MAP = DESIGN.partition("## A map of the rooms")[2].partition("\n## ")[0]


def test_the_map_has_every_room_in_its_rank():
    rooms = re.findall(r"^- `(\w+)`", MAP.partition("\n### ")[0], re.MULTILINE)
    assert tuple(rooms) == LAYERS


def test_the_map_says_which_rooms_are_pure():
    pure = {room for room in PURE if "." not in room}
    assert set(re.findall(r"^- `(\w+)` \(pure\)", MAP, re.MULTILINE)) == pure


def test_the_map_walks_through_files_that_exist():
    walked = re.findall(r"`([\w/-]+(?:\.py|\.rs|/))`", MAP.partition("\n### ")[2])
    assert len(walked) > 20
    missing = [
        name for name in walked if not any((top / name).exists() for top in (ROOT, ROOT.parent.parent))
    ]
    assert missing == []


# --- what a module offers ---------------------------------------------------------------------------------


def with_list():
    return [name for name in sorted(modules()) if name not in ("__main__", "catalog.install.pip_settings")]


def test_what_a_package_lists_is_there_once():
    lists = {name: names for name in with_list() if (names := listed(name)) is not None}
    absent = [
        (name, entry)
        for name, names in lists.items()
        for entry in names
        if not hasattr(importlib.import_module(f"prony.{name}"), entry)
    ]
    assert absent == []
    assert [name for name, names in lists.items() if len(set(names)) < len(names)] == []


def test_what_others_take_from_a_module_is_public_and_its_own():
    passed_on = [
        (other, module, imported)
        for other in modules()
        for module, imported in own_imports(other)
        if module in modules() and imported and imported not in offered(module)
    ]
    assert passed_on == []


def test_every_module_says_what_it_is_for():
    assert [name for name in with_list() if not ast.get_docstring(tree(name))] == []


# --- registries -------------------------------------------------------------------------------------------


def files_of(folder):
    return {file.stem for file in (ROOT / folder).glob("*.py")} - {"__init__"}


def test_every_diagnosis_is_in_the_list_of_rules():
    from prony.diagnosis.rules import RULES

    modules = {rule.__module__.rpartition(".")[2] for rule in RULES.values()}
    others = {
        *("evidence", "consumption", "knobs", "conclusion", "confirmation"),
        *("time_spent", "kinds", "shared", "rules"),
    }
    assert modules == files_of("diagnosis") - others


def test_every_row_of_the_tables_of_metrics_is_listed_once():
    from prony.core.metrics import METRICS, Metric

    files = (importlib.import_module(f"prony.core.metrics.{name}") for name in files_of("core/metrics"))
    tables = (value for file in files for value in vars(file).values() if isinstance(value, tuple))
    rows = [row for table in tables for row in table if isinstance(row, Metric)]
    assert sorted(row.name for row in rows) == sorted(METRICS)


def test_every_kind_of_sandbox_that_a_plan_may_name_is_listed():
    from prony.model.sandbox import SandboxKind
    from prony.sandbox import SANDBOXES

    assert set(SandboxKind) == set(SANDBOXES)
    # `cgroup` is `process` with the control groups of its folder.
    assert set(SANDBOXES) <= files_of("sandbox") | {"cgroup"}


def test_the_engine_that_is_taken_by_default_is_listed():
    from prony.engine.registry import ENGINES
    from prony.model.workload import EngineChoice

    assert EngineChoice().name in ENGINES


def test_every_command_is_listed():
    from prony.cli.main import COMMANDS

    with_epilog = {name.removeprefix("cli.") for name in modules() if "EPILOG" in offered(name)}
    assert set(COMMANDS) == with_epilog


def test_every_shared_part_of_the_command_line_is_used():
    from prony.cli.main import COMMANDS

    commands = {f"cli.{name}" for name in COMMANDS}
    rooms = {"cli", "cli.main", "cli.documents"}
    parts = {name for name in modules() if under(name, ("cli",))} - commands - rooms
    used = {module for name in modules() for module, _ in own_imports(name)}
    assert parts <= used


def test_a_load_starts_with_the_types_of_a_load_alone():
    # Its first request comes when everything is imported.
    code = "import sys, prony.cli.load; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    types = {name for name in done.stdout.split() if name.startswith("prony.model.")}
    assert types == {f"prony.model.{name}" for name in ("address", "exchange", "json_codec", "workload")}

"""Runs the tests that enter a mutated function, each mutant in a process of its own, in Prony's environment.

    python python_tests.py ROOT MAP JOBS < MUTANTS

The first time it runs all tests of `SUITES` once, notes which test enters which function that has mutants,
and keeps that in the file MAP. A mutant, a line of JSON with `file`, `function` and `source`, is
imported in place of the module's own source: no file of the repository changes. Prints a line of JSON for
each: killed, survived, timed out, or untested where no test enters the function.
"""

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUITES = (
    *(f"tests/{name}" for name in ("analysis", "reading", "report", "diagnosis", "archive", "golden")),
    # Of the others those that enter the packages in this process, and are quick.
    *(f"tests/cli/test_{name}.py" for name in ("compare", "report_sessions", "selftest", "selftest_planted")),
    "tests/model/test_recording.py",
)
PACKAGES = tuple(f"python/prony/{name}/" for name in ("figures", "reading", "diagnosis", "archive"))
SPARE_S, FACTOR, BYTES = 20, 4, 6 << 30  # a mutant may loop or allocate for ever
PYTEST = (
    *("-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=1", "--tb=line"),
    # A module named for its doctests is looked through whole: `tested` and `Tested` are no tests.
    *("-o", "python_classes=Test[A-Z]*", "-o", "python_functions=test_*"),
)
ENDS = {0: "survived", 1: "killed", 2: "killed", 5: "untested"}  # statuses of pytest; 2: an import failed
PRELOADED = ("numpy", "scipy.stats", "scipy.special", "scipy.optimize", "pydantic", "rich")


def main() -> None:
    """Run each mutant of the standard input."""
    root, kept, jobs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), int(sys.argv[3])
    os.chdir(root)
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    if not kept.exists() or json.loads(kept.read_text())["tests"] != digest():
        kept.write_text(json.dumps(traced(kept, jobs)))
    known = json.loads(kept.read_text())
    mutants = [json.loads(line) for line in sys.stdin]
    for name in PRELOADED:  # once, before the forks
        importlib.import_module(name)
    if "control" not in known:
        control(known)
        kept.write_text(json.dumps({**known, "control": "passed"}))
    run_all(mutants, known, jobs)


def traced(kept: Path, jobs: int) -> dict:
    """Return the map, of parts that so many processes make."""
    parts = [kept.with_suffix(f".{number}") for number in range(jobs)]
    commands = [
        [sys.executable, __file__, "--trace", str(part), str(k), str(jobs)] for k, part in enumerate(parts)
    ]
    running = [subprocess.Popen(command, stdout=sys.stderr) for command in commands]
    if max(process.wait() for process in running):
        raise SystemExit("error: a test fails without any mutant")
    made = {"tests": digest(), "functions": {}, "cpu_s": {}}
    for part in map(json.loads, (path.read_text() for path in parts)):
        made["cpu_s"].update(part["cpu_s"])
        for function, tests in part["functions"].items():
            made["functions"].setdefault(function, []).extend(tests)
    return made


def control(known: dict) -> None:
    """Run all tests against the product, which survives, and against a module that fails, which does not."""
    file = PACKAGES[0] + "drift.py"
    tests = sorted(known["cpu_s"])
    for source, expected in ((Path(file).read_text(), "survived"), ("raise RuntimeError", "killed")):
        mutant = {"file": file, "source": source, "log": os.devnull}
        process = os.fork()
        if process == 0:
            os._exit(run_one(mutant, tests, 3600))
        if outcome(os.waitpid(process, 0)[1]) != expected:
            raise SystemExit(f"error: a control was not {expected}")


def digest() -> str:
    """Return what the tests and the product are: another map holds for others."""
    sum_ = hashlib.sha256()
    for folder in ("tests", "python/prony"):
        for path in sorted(Path(folder).rglob("*.py")):
            sum_.update(path.read_bytes())
    return sum_.hexdigest()


class Trace:
    """A plugin of pytest: which test enters which function, and the CPU time of each test."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept
        self.prefixes = tuple(str(Path(one).resolve()) + "/" for one in PACKAGES)
        self.entered: set[tuple[str, str]] = set()
        self.tests: dict[str, list[str]] = {}
        self.cpu_s: dict[str, float] = {}

    def note(self, frame, event, _argument) -> None:
        """Keep a function of the packages under test; called by the interpreter."""
        if event == "call" and frame.f_code.co_filename.startswith(self.prefixes):
            self.entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    def pytest_runtest_protocol(self, item, nextitem):
        from _pytest.runner import runtestprotocol

        self.entered, started = set(), time.process_time()
        sys.settrace(self.note)
        runtestprotocol(item, nextitem=nextitem, log=True)
        sys.settrace(None)
        self.cpu_s[item.nodeid] = time.process_time() - started
        for path, name in self.entered:
            self.tests.setdefault(key(os.path.relpath(path), name.replace(".<locals>", "")), []).append(
                item.nodeid
            )
        return True

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus:
            return  # half a map would be taken for a whole one
        self.kept.write_text(json.dumps({"functions": self.tests, "cpu_s": self.cpu_s}))


def key(file: str, function: str) -> str:
    """Return the name under which a function is kept; lambdas and comprehensions belong to theirs."""
    return file + "::" + function.split(".<", maxsplit=1)[0]


def trace(kept: Path, part: int, parts: int) -> int:
    """Run one part of the files of tests once and keep which test enters what."""
    import pytest

    sources = [path for package in PACKAGES for path in sorted(Path(package).rglob("*.py"))]
    suites = [
        path
        for suite in map(Path, SUITES)
        for path in sorted(suite.rglob("test_*.py") if suite.is_dir() else [suite])
    ]
    files = [*suites, *sources][part::parts]
    options = [one for one in PYTEST if one != "-x"]
    return pytest.main(
        [*options, "-m", "not servers and not slow and not quiet", *map(str, files)], plugins=[Trace(kept)]
    )


def chosen(mutant: dict, known: dict) -> list[str]:
    """Return the tests of a mutant: those of the module's own file first, then the quick ones."""
    functions = known["functions"]
    parts = mutant["function"].split(".")
    tests = set(functions.get(key(mutant["file"], mutant["function"]), ()))
    if not mutant["function"] or not functions.keys() & names(mutant["file"], parts):
        tests = {
            test
            for name, some in functions.items()
            if name.startswith(mutant["file"] + "::")
            for test in some
        }
    own = f"/test_{Path(mutant['file']).stem}.py"
    return sorted(tests, key=lambda test: (own not in test, known["cpu_s"][test]))


def names(file: str, parts: list[str]) -> set[str]:
    """Return the names under which a place in a class or function may be kept."""
    return {key(file, ".".join(parts[:end])) for end in range(1, len(parts) + 1)}


def run_all(mutants: list[dict], known: dict, jobs: int) -> None:
    """Run all mutants, so many at a time, and print each outcome as it comes."""
    waiting, running = list(reversed(mutants)), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            tests = chosen(mutant, known)
            if not tests:
                tell(mutant, "untested", 0)
                continue
            seconds = SPARE_S + FACTOR * sum(known["cpu_s"][test] for test in tests)
            process = os.fork()
            if process == 0:
                os._exit(run_one(mutant, tests, int(seconds)))
            running[process] = (mutant, len(tests))
        if running:
            process, status = os.wait()
            mutant, count = running.pop(process)
            tell(mutant, outcome(status), count)


def outcome(status: int) -> str:
    """Return what an exit status means."""
    if os.WIFSIGNALED(status):
        return "timed out"
    return ENDS.get(os.WEXITSTATUS(status), "broken")


def tell(mutant: dict, end: str, tests: int) -> None:
    """Print one outcome."""
    print(json.dumps({"id": mutant["id"], "outcome": end, "tests": tests}), flush=True)


def run_one(mutant: dict, tests: list[str], seconds: int) -> int:
    """Run the tests against one mutant, in this process; return pytest's status."""
    with tempfile.TemporaryDirectory() as folder:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        # Of what is written: a library that draws reserves more addresses than there is memory.
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        with Path(mutant["log"]).open("wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        name = mutant["file"].removeprefix("python/").removesuffix(".py").replace("/", ".")
        finder = InPlace(name.removesuffix(".__init__"), mutant["source"])
        import pytest

        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        status = int(pytest.main([*PYTEST, *files], plugins=[Chosen(tests, finder)]))
        sys.stdout.flush()
    return status


class Chosen:
    """A plugin of pytest that runs the tests given, in that order, with another source of one module."""

    def __init__(self, tests: list[str], finder: "InPlace") -> None:
        self.finder = finder
        self.order = {test: rank for rank, test in enumerate(tests)}

    def pytest_collection(self) -> None:
        """Find the module before pytest does, which loads the files that it collects itself."""
        sys.meta_path.insert(0, self.finder)

    def pytest_collection_modifyitems(self, items) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )


class InPlace(importlib.abc.MetaPathFinder):
    """Finds one module, and gives it another source."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = Loader(spec.loader.name, spec.loader.path, self.source)
        return spec


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles the source given in place of the file's."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self.source = source

    def get_code(self, fullname):
        return compile(self.source, self.path, "exec", dont_inherit=True)


if __name__ == "__main__":
    sys.exit(trace(Path(sys.argv[2]), *map(int, sys.argv[3:])) if sys.argv[1] == "--trace" else main())

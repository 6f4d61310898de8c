"""Prony as its users have it: a command line in a folder, with a cache that other tests share."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache as cache_of_values
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import pytest

from prony.core.users import builder_for, own_folder, resolve_user

COLUMNS = 100

# A Prony whose claim of the machine has another name.
OWN_CLAIM = """
import secrets, sys
from importlib import import_module
import_module("prony.machine.claim")._NAME = "\\0prony-test-" + secrets.token_hex(8)
"""
MAIN = """
from prony.cli.main import main
main()
"""
# A Prony that runs beside others: it also takes what others do for no disturbance, and checks servers with a
# short load: hundreds of requests show what works. No test that looks at its figures may use it (`quiet` in
# pyproject.toml).
BESIDE = (
    OWN_CLAIM
    + """
if {"run", "tune", "servers", "selftest", "calibrate"} & set(sys.argv[1:2]):
    judge = import_module("prony.figures.validity")
    for most in ("_MOST_STEAL", "MOST_OTHER_LOAD"):
        assert getattr(judge, most) < 1
        setattr(judge, most, 1.0)
    rounds = import_module("prony.figures.rounds")
    assert rounds._MOST_DISTURBED < 1
    rounds._MOST_DISTURBED = 1.0
if "--check" in sys.argv:
    check = import_module("prony.study.catalog_check")
    assert check.DURATION_NS == 1_000_000_000
    check.DURATION_NS = 200_000_000
"""
    + MAIN
)
QUIET_PROGRAM, BESIDE_PROGRAM = ("-m", "prony"), ("-c", BESIDE)


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def without_page(arguments):
    """Return arguments in which a study does not draw its page, unless they are about it; of an option that
    takes one value, which tests have in common and change, the last one counts.
    """
    words = last_of_each([str(one) for one in arguments])
    return [*words, "--no-html"] if words[:1] == ["run"] and "--help" not in words else words


def last_of_each(words):
    places = {}
    for place, word in enumerate(words[:-1]):
        if word in single_options(words[0]) and words[place - 1] not in single_options(words[0]):
            places.setdefault(word, []).append(place)
    gone = {place + more for found in places.values() for place in found[:-1] for more in (0, 1)}
    return [word for place, word in enumerate(words) if place not in gone]


@cache_of_values
def single_options(command):
    """The options of a command that take one value."""
    from typer.main import get_command

    from prony.cli.main import app_with

    found = get_command(app_with()).commands.get(command)
    return frozenset(
        name
        for one in (found.params if found else ())
        if not one.multiple and not getattr(one, "is_flag", False)
        for name in one.opts
        if name.startswith("-")
    )


@dataclass(frozen=True)
class Prony:
    """Starts Prony in ``folder`` as a user would, and shows what was said when it takes too long."""

    cache: Path
    folder: Path
    program: tuple[str, ...] = BESIDE_PROGRAM

    def __call__(self, *arguments, timeout_s=60, **options) -> Done:
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate(timeout=30)
            pytest.fail(f"prony {arguments} was not done after {timeout_s} s\n{out}\n{err}")
        return Done(process.returncode, out, err)

    def start(self, *arguments, ignored=(), program=None, **environment):
        """Start it as a shell with a terminal does; ``ignored``: signals that it is started to ignore."""
        return subprocess.Popen(
            [sys.executable, *(program or self.program), *without_page(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment() | environment,
            # A session of its own: a signal to it must not reach the tests.
            start_new_session=True,
            preexec_fn=lambda: heed_all_signals_but(ignored),  # noqa: PLW1509 - nothing else runs meanwhile
        )

    def environment(self) -> dict[str, str]:
        own = {
            "PRONY_CACHE": str(self.cache),
            "COLUMNS": str(COLUMNS),
            "NO_COLOR": "1",
            "PYTHONWARNINGS": "error",
        }
        return {**os.environ, **own}


def heed_all_signals_but(ignored=()) -> None:
    """Set the signals with which users end a command: these tests may have been started in the background,
    with some of them ignored.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)


@contextlib.contextmanager
def passable_folder() -> Iterator[Path]:
    """Yield a folder that is open to the user that servers run as when the tests are root's.

    pytest's own temporary folder is closed, and each session of it that starts closes it again.

    `PRONY_TEST_KEEP=yes` leaves it: the environments of all servers are removed in a minute, for nothing on a
    machine that is thrown away.
    """
    with _temporary_folder("prony-tests-") as name:
        Path(name).chmod(0o755)
        yield Path(name).resolve()


def _temporary_folder(prefix: str) -> contextlib.AbstractContextManager[str]:
    if os.environ.get("PRONY_TEST_KEEP") == "yes":
        return contextlib.nullcontext(mkdtemp(prefix=prefix))
    return TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)


def eventually(condition: Callable[[], object], timeout_s: float = 5.0) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def ended(process: "subprocess.Popen[str]") -> "Iterator[subprocess.Popen[str]]":
    """Yield ``process``; afterwards it has ended, by SIGTERM if it must."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="session")
def cache() -> Iterator[Path]:
    """Prony's cache: the one that PRONY_TEST_CACHE names, else a fresh one.

    Where tests run beside others each process has its own, for they look at what is left in it, but packages
    are fetched and compiled once for all. What the first of them has built is there for the tests that follow
    alone.
    """
    kept = os.environ.get("PRONY_TEST_CACHE")
    if kept:
        own = Path(kept) / os.environ.get("PYTEST_XDIST_WORKER", "gw0")
        share_packages(own, Path(kept) / "packages")
        yield own
        return
    with passable_folder() as path:
        yield path / "cache"


def share_packages(own: Path, shared: Path) -> None:
    """Let uv keep what it fetches and compiles in ``shared``, for every cache of the same builder."""
    builder = builder_for(resolve_user())
    home = own_folder(own / f"builder-{builder.name}", builder, 0o700)
    if not (home / "uv").exists():
        (home / "uv").symlink_to(own_folder(shared / builder.name, builder).resolve())


@pytest.fixture
def folder() -> Iterator[Path]:
    """A user's own folder, in which commands are started."""
    with passable_folder() as path:
        yield path


@pytest.fixture
def prony(cache: Path, folder: Path, request: pytest.FixtureRequest) -> Prony:
    """Prony as users start it where the test has the machine to itself, else one that leaves it to others."""
    alone = any(request.node.get_closest_marker(name) for name in ("quiet", "slow"))
    return Prony(cache, folder, QUIET_PROGRAM if alone else BESIDE_PROGRAM)

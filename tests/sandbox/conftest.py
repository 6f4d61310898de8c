import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.sandbox.guest import Guest

from prony.model import Placement, SandboxChoice, SandboxKind
from prony.runas import RunAs, resolve_user
from prony.sandbox import Sandbox, open_sandbox
from prony.sandbox.choice import Absent
from prony.sandbox.containers.engine import ContainerEngine
from prony.sandbox.containers.found import find_engine
from prony.sandbox.journal import RunFolder, open_run

TESTS = Path(__file__).parents[1]
# They start nothing and measure nothing, and leave one of two CPUs free.
THAT_ONLY_COMPUTE = tuple(TESTS / name for name in ("analysis", "archive", "diagnosis", "report"))


def guest_of(item: pytest.Item) -> Guest | None:
    """Return the guest that a test asks, if it asks one."""
    own = vars(item.module).values() if isinstance(item, pytest.Function) else ()
    return next((value for value in own if isinstance(value, Guest)), None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that only compute first, and those that ask guests next: guests boot beside the former."""

    def rank(item: pytest.Item) -> int:
        if any(item.path.is_relative_to(folder) for folder in THAT_ONLY_COMPUTE):
            return 0
        return 1 if guest_of(item) else 2

    items.sort(key=rank)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Start the guests that will be asked before the first test, and end them after the last."""
    guests = {guest: None for item in session.items if (guest := guest_of(item))}
    with TemporaryDirectory(prefix="prony-guests-") as folder:
        try:
            if not session.config.option.collectonly:
                for number, guest in enumerate(guests):
                    place = Path(folder, str(number))
                    place.mkdir()
                    # The test that asks it tries again, and shows the reason.
                    with contextlib.suppress(OSError, subprocess.SubprocessError):
                        guest.begin(place)
            return (yield)
        finally:
            for guest in guests:
                guest.end()


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunAs]:
    # Not below pytest's folder, which each other run of pytest closes to all but its own user.
    with TemporaryDirectory(prefix="prony-test-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("PRONY_CACHE", folder)
        yield resolve_user()


@pytest.fixture
def run(user: RunAs) -> Iterator[RunFolder]:
    with open_run(user) as run:
        yield run


@pytest.fixture
def sandbox(user: RunAs, run: RunFolder) -> Sandbox:
    return open_sandbox(SandboxChoice(), user, run.trial_folder("trial"))


@pytest.fixture
def placement() -> Placement:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    return Placement(cpus[:1], cpus[-1:], shared=len(cpus) == 1)


@pytest.fixture
def mark() -> str:
    return f"mark-{secrets.token_hex(8)}"


@pytest.fixture
def engine() -> ContainerEngine:
    """Return the container engine that works here."""
    found = find_engine()
    if isinstance(found, Absent):
        pytest.skip(found.reason)
    return found.engine


@pytest.fixture(params=["isolated", "ordinary", "container"])
def any_sandbox(
    request: pytest.FixtureRequest,
    user: RunAs,
    run: RunFolder,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Sandbox:
    """Return the sandbox as it is here, as it is without privileges for namespaces, and in a container."""
    if request.param == "container":
        request.getfixturevalue("engine")
        return open_sandbox(SandboxChoice(SandboxKind.CONTAINER), user, run.trial_folder("trial"))
    if request.param == "ordinary":
        denied = {
            "network": "denied by the test",
            "pids": "denied by the test",
            "files": "denied by the test",
        }
        monkeypatch.setattr("prony.sandbox.process._possible_namespaces", lambda: denied)
    return sandbox

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.core.users import RunAs, resolve_user
from prony.model.sandbox import Placement, SandboxChoice, SandboxKind
from prony.sandbox import Sandbox, open_sandbox
from prony.sandbox.choice import Absent
from prony.sandbox.container_engine import ContainerEngine, find_engine
from prony.sandbox.journal import RunFolder, open_run

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts containers of a real engine takes its time."""
    for item in items:
        if item.path.is_relative_to(HERE) and "engine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


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


@pytest.fixture(params=["isolated", "ordinary", pytest.param("container", marks=pytest.mark.slow)])
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
        monkeypatch.setattr("prony.sandbox.process.possible_namespaces", lambda: denied)
    return sandbox

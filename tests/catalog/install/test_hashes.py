"""What is resolved for a user's app is installed with its hashes, unless something in it cannot have one."""

from dataclasses import dataclass, replace

import pytest

from commands import passable_folder
from prony.catalog.install.build import _filled, _Recipe, environment_name
from prony.catalog.install.child import FinishedCommand
from prony.catalog.install.environment import Declared, EnvironmentRequest
from prony.catalog.install.interpreter import Interpreter
from prony.catalog.install.resolve import Lock, Unresolved, Wanted, resolve_lock
from prony.catalog.install.uv import Uv
from prony.catalog.schema.loader import load_catalog
from prony.core.users import builder_for, resolve_user

HASHED = "".join(
    f"{name} \\\n    --hash=sha256:{64 * digit}\n"
    for name, digit in (("falcon==4.4.0", "a"), ("flask==3.1.3", "c"))
)


@dataclass
class Uvs:
    """Runs nothing: keeps the commands, and answers with a lock."""

    builder: object
    answer: str
    commands: list

    def run(self, command, environment, folder, **_):
        self.commands.append(command)
        return FinishedCommand(0, self.answer, "")

    @property
    def keeper(self):
        return self.builder

    def build(self, task, stdin=None):
        return self.run(task.command, task.environment, task.folder)

    def tried(self, task, by=None):
        return FinishedCommand(0, "", "")


@pytest.fixture
def user():
    with passable_folder() as folder:
        yield replace(resolve_user(), cache=folder)


def answering(user, answer):
    """Return a uv that answers, what notes its commands, and an interpreter."""
    uvs = Uvs(builder_for(user), answer, [])
    python = Interpreter(user.cache / "python", "CPython 3.11.2", (3, 11))
    return Uv("uv", {}, user.cache, uvs), uvs, python


def resolved(user, answer):
    """Return the lock that is made of what uv answers, and the command that was given."""
    server = load_catalog().server("wsgiref")
    uv, uvs, python = answering(user, answer)
    wanted = Wanted(server, server.install, ("falcon==4.4.0",))
    found = resolve_lock(uv, user, python, wanted)
    _filled(
        EnvironmentRequest("x", server),
        user.cache / "venv",
        user.cache / "lock.txt",
        _Recipe(uv, python, found),
    )
    return found, uvs.commands


def test_builds_read_the_variables_that_the_entry_names(user):
    seen = []

    class Seeing(Uvs):
        def run(self, command, environment, folder, **more):
            seen.append(environment)
            return super().run(command, environment, folder, **more)

    server = load_catalog().server("wsgiref")
    uv = Uv("uv", {"HOME": "/home"}, user.cache, Seeing(builder_for(user), HASHED, []))
    python = Interpreter(user.cache / "python", "CPython 3.11.2", (3, 11))
    recipe = _Recipe(uv, python, Lock("-e ./mine\n"), {"CFLAGS": "-Wno-error"})
    _filled(EnvironmentRequest("x", server), user.cache / "venv", user.cache / "lock.txt", recipe)
    assert seen == [{"HOME": "/home", "CFLAGS": "-Wno-error"}] * 2


def test_packages_that_are_built_in_another_way_are_another_environment(user):
    server, lock = load_catalog().server("uwsgi-as-of-2016"), Lock(HASHED)
    python = Interpreter(user.cache / "python", "CPython 2.7.18", (2, 7))
    install = server.install
    plain = install.model_copy(update={"variables": {}})
    names = [environment_name(server, one, lock, python, user) for one in (install, plain, install)]
    assert names[0] == names[2] != names[1]


def test_uv_is_asked_for_hashes_and_must_compare_them(user):
    lock, (compiled, _, installed) = resolved(user, HASHED)
    assert lock == Lock(HASHED)
    assert "--generate-hashes" in compiled
    assert "--require-hashes" in installed


@pytest.mark.parametrize("more", ["-e ./mine", "mine @ file:///srv/mine", "mine @ git+https://x/mine"])
def test_what_cannot_have_a_hash_is_installed_and_the_others_are_still_compared(user, more):
    lock, (*_, installed) = resolved(user, f"{HASHED}{more}\n")
    assert not lock.hashed
    assert "--require-hashes" not in installed
    assert not {"--no-verify-hashes"} & set(installed)


def test_a_lock_that_was_kept_is_compared_too(user):
    resolved(user, HASHED)
    lock, commands = resolved(user, "not asked again")
    assert lock.hashed
    assert not any("--generate-hashes" in command for command in commands)


FORGED = {
    "no path": "-e ./a\0b",
    "no address": "x @ file://[",
    "a name without an end": "-e ./" + "a" * 5000,
    "the whole machine": "x @ file:///",
    "folders in folders": "-e /usr/lib\n-e /usr\n",
    "more lines than files": "".join(f"-e ./{number}\n" for number in range(3000)),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_lock_as_only_a_build_writes_one_is_refused_in_one_line(user, what, monkeypatch):
    monkeypatch.setattr("prony.catalog.install.child._MOST_FILES", 1000)
    server, file = load_catalog().server("wsgiref"), user.cache / "requirements.txt"
    file.write_text("./mine\n")
    uv, _, python = answering(user, FORGED[what])
    found = resolve_lock(uv, user, python, Wanted(server, server.install, declared=Declared(file)))
    assert isinstance(found, Unresolved)
    assert found.reason.startswith("`wsgiref` cannot be installed: ")
    assert found.reason.isprintable()
    assert len(found.reason) < 300

"""What an entry compiles or makes of its own files: once, of what it depends on, and whole or not at all."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.catalog.discover.sources import Program
from prony.catalog.install.environment import Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import prepare
from prony.catalog.install.status import installed_versions, works
from prony.catalog.install.system import find_programs, version_in
from prony.catalog.schema.command import program_entry
from prony.catalog.schema.loader import load_catalog, load_server, load_service
from prony.core.users import RunAs, resolve_user

ENTRY = """
name = "mine"
title = "Mine"
language = "c"
interfaces = ["none"]
serves = ["hello"]
command = ["{sh}", "{build}/server", "{host}", "{port}"]
[install]
kind = "system"
version = ["{sh}", "-c", "echo shell 7.8.9"]
interpreter = ["{sh}", "-c", "echo on a shell; echo and more"]
[install.programs]
sh = ["no-such-shell", "sh"]
[install.build]
run = [
    ["{sh}", "make.sh", "{source}", "{build}"],
    { run = ["{sh}", "-c", "cat > $0/read", "{build}"], stdin = "{build}/server" },
]
product = "server"
[facts]
backlog = { source = "its manual" }
keep_alive = [{ on = false, source = "its manual" }]
concurrency = { text = "one", source = "its manual" }
[[roles]]
role = "server"
where = "main"
"""
MAKE = 'echo made >> "$1/log"; cp "$1/text" "$2/server"\n'


@pytest.fixture
def open_folder() -> Iterator[Path]:
    # pytest's own temporary folder is closed to other users, as whom commands run when this runs as root.
    with TemporaryDirectory(prefix="prony-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def user(open_folder: Path) -> RunAs:
    return replace(resolve_user(), cache=open_folder / "cache")


@pytest.fixture
def file(open_folder: Path) -> Path:
    file = open_folder / "mine.toml"
    file.write_text(ENTRY)
    folder = open_folder / "mine"
    folder.mkdir()
    (folder / "make.sh").write_text(MAKE)
    (folder / "text").write_text("serve\n")
    return file


def prepared(file: Path, user: RunAs) -> tuple[Environment | Unavailable, list[str]]:
    states: list[str] = []
    request = EnvironmentRequest("mine", load_server(file))
    found = prepare([request], user, lambda progress: states.append(progress.state))
    return found["mine"], states


def test_it_is_built_once_and_says_what_it_is(file: Path, user: RunAs) -> None:
    first, states = prepared(file, user)
    assert isinstance(first, Environment)
    assert (first.version, first.interpreter) == ("7.8.9", "on a shell")
    assert first.build is not None
    assert (first.build / "server").read_text() == (first.build / "read").read_text() == "serve\n"
    assert states == ["queued", "building", "ready"]
    assert prepared(file, user) == (first, ["queued", "ready"])


def test_another_source_or_command_is_another_product(file: Path, user: RunAs) -> None:
    builds = {str(prepared(file, user)[0])}
    (file.parent / "mine" / "text").write_text("other\n")
    builds.add(str(prepared(file, user)[0]))
    file.write_text(ENTRY.replace("make.sh", "./make.sh"))
    builds.add(str(prepared(file, user)[0]))
    assert len(builds) == 3


def test_the_sources_are_not_written_to(file: Path, user: RunAs) -> None:
    prepared(file, user)
    assert sorted(one.name for one in (file.parent / "mine").iterdir()) == ["make.sh", "text"]


def test_what_a_step_leaves_among_its_sources_is_removed_whatever_its_depth(file: Path, user: RunAs) -> None:
    deep = "i=0; while [ $i -lt 1500 ]; do mkdir d; cd d; i=$((i+1)); done"
    (file.parent / "mine" / "make.sh").write_text(f'{MAKE}cd "$1"; {deep}\n')
    found, _ = prepared(file, user)
    assert isinstance(found, Environment), found
    assert found.build is not None
    assert not (found.build.parent / "source").exists()


def test_a_step_that_fails_is_told_and_leaves_nothing(file: Path, user: RunAs) -> None:
    (file.parent / "mine" / "make.sh").write_text('echo "no such header" >&2; exit 3\n')
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert found.reason == "`mine` cannot be built: no such header"
    assert [one.name for one in (user.cache / "builds").iterdir() if one.is_dir()] == []


def test_a_product_that_does_not_come_is_told(file: Path, user: RunAs) -> None:
    (file.parent / "mine" / "make.sh").write_text(
        'echo x > "$2/server.tmp"; : > "$2/server"; rm "$2/server"\n'
    )
    file.write_text(ENTRY.replace("    { run", "    # { run"))
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert found.reason == "`mine` cannot be built: the commands did not create `server`"


def test_a_program_that_is_not_there_is_told_with_what_is_needed(file: Path, user: RunAs) -> None:
    file.write_text(ENTRY.replace('["no-such-shell", "sh"]', '["no-such-shell"]'))
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert "cannot find or run the program `sh`" in found.reason
    file.write_text(
        ENTRY.replace('["no-such-shell", "sh"]', '["no-such-shell"]').replace(
            "[install]", '[needs]\ndebian = ["no-such-package"]\n[install]'
        )
    )
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert found.reason == (
        "`mine` needs no-such-package from the system; `prony doctor mine` shows how to install it"
    )


def test_a_package_that_is_not_installed_is_not_missed_where_all_works(file: Path, user: RunAs) -> None:
    file.write_text(ENTRY.replace("[install]", '[needs]\ndebian = ["no-such-package"]\n[install]'))
    assert isinstance(prepared(file, user)[0], Environment)


def test_what_does_not_say_its_version_does_not_work(file: Path, user: RunAs) -> None:
    file.write_text(ENTRY.replace("echo shell 7.8.9", "echo cannot load >&2; exit 2"))
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert found.reason == "`mine` does not work: cannot load"


def test_a_services_product_depends_on_the_app(open_folder: Path, file: Path, user: RunAs) -> None:
    text = ENTRY.replace('interfaces = ["none"]\nserves = ["hello"]\n', "variables = { KEY = '{port}' }\n")
    text = text.partition("[facts]")[0] + "[[roles]]" + text.partition("[[roles]]")[2]
    file.write_text(text.replace('"{build}/server" }', '"{app_dir}/seed" }'))
    (open_folder / "app").mkdir(mode=0o755)
    (open_folder / "app" / "seed").write_text("seed\n")
    entry = load_service(file)
    requests = [
        EnvironmentRequest(digest, entry, app_folder=open_folder / "app", app_digest=digest)
        for digest in ("one", "two")
    ]
    found = prepare(requests, user, lambda _: None)
    one, two = found["one"], found["two"]
    assert isinstance(one, Environment)
    assert isinstance(two, Environment)
    assert one.build != two.build
    assert one.build
    assert (one.build / "read").read_text() == "seed\n"


def test_programs_are_found_by_name_or_pattern(open_folder: Path, user: RunAs) -> None:
    for version in ("14", "15"):
        folder = open_folder / version / "bin"
        folder.mkdir(parents=True)
        (folder / "initdb").write_text("#!/bin/sh\n")
        (folder / "initdb").chmod(0o755)
    (open_folder / "closed").write_text("")
    candidates = {
        "initdb": ["no-such-program", f"{open_folder}/*/bin/initdb"],
        "sh": ["sh"],
        "closed": [f"{open_folder}/closed"],
        "none": ["no-such-program"],
    }
    found = find_programs(candidates, user)
    assert found["initdb"] == open_folder / "15" / "bin" / "initdb"
    assert found["sh"].name == "sh"
    assert set(found) == {"initdb", "sh"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("nginx version: nginx/1.22.1", "1.22.1"),
        ("v20.20.2", "20.20.2"),
        ('openjdk version "17.0.15" 2025-04-15', "17.0.15"),
        ("Starman\n0.4016", "0.4016"),
        ("none at all", None),
        ("", None),
    ],
)
def test_the_version_is_the_number_in_what_a_program_says(text: str, version: str | None) -> None:
    assert version_in(text) == version


def test_what_only_lay_in_the_folder_is_not_started_to_tell_its_version(
    file: Path, user: RunAs, open_folder: Path
) -> None:
    mark = open_folder / "mark"
    open_folder.chmod(0o777)
    text = ENTRY.replace("echo shell 7.8.9", f"echo 1.2 > {mark}; echo shell 7.8.9")
    file.write_text(text.replace("[install]", '[needs]\ndebian = ["no-such-package"]\n[install]', 1))
    found = open_folder / "prony.d"
    found.mkdir()
    file.rename(found / "mine.toml")
    entry = load_catalog(found=found).server("mine")
    assert not works(entry, user)
    assert installed_versions([entry], user) == {}
    assert not mark.exists()
    assert installed_versions([entry.asked_for()], user) == {"mine": "7.8.9"}
    assert mark.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it changes users")
def test_a_step_reads_nothing_that_its_user_may_not(file: Path, user: RunAs, open_folder: Path) -> None:
    secret = open_folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    file.write_text(ENTRY.replace('stdin = "{build}/server"', f'stdin = "{secret}"'))
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert "Permission denied" in found.reason


def test_a_link_beside_the_entry_is_refused(file: Path, user: RunAs) -> None:
    (file.parent / "mine" / "link").symlink_to("/etc/hostname")
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert "is a link; expected ordinary files" in found.reason


def of_app(folder):
    """An entry that copies what lies in a user's folder."""
    program = Program(
        name="mine",
        language="other",
        source="a test",
        command=("{build}/a.txt",),
        tools={"cp": ("cp",)},
        build=(("{cp}", "-R", "{source}/.", "{build}"),),
        product="a.txt",
    )
    return program_entry(program, folder, {})


def test_of_an_apps_folder_only_what_anybody_may_read_is_copied(user: RunAs, open_folder: Path) -> None:
    app = open_folder / "shop"
    for name in ("a.txt", "node_modules/b.txt", ".env"):
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text("text")
    (app / ".env").chmod(0o600)
    request = EnvironmentRequest("mine", of_app(app))
    found = prepare((request,), user, lambda _progress: None)["mine"]
    assert isinstance(found, Environment)
    assert [path.name for path in found.build.iterdir()] == ["a.txt"]


def test_an_apps_folder_that_is_all_closed_is_refused(user: RunAs, open_folder: Path) -> None:
    app = open_folder / "shop"
    app.mkdir()
    (app / "a.txt").write_text("text")
    (app / "a.txt").chmod(0o600)
    found = prepare((EnvironmentRequest("mine", of_app(app)),), user, lambda _progress: None)["mine"]
    assert isinstance(found, Unavailable)
    assert "others may not read" in found.reason


def test_an_interpreter_that_does_not_tell_is_no_interpreter(file: Path, user: RunAs) -> None:
    file.write_text(ENTRY.replace("echo on a shell; echo and more", "echo no module >&2; exit 2"))
    found, _ = prepared(file, user)
    assert isinstance(found, Unavailable)
    assert found.reason == "`mine` does not work: no module"

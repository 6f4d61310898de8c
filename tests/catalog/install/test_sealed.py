"""What was built belongs to nobody who runs it: subjects cannot poison each other, and a change is seen."""

import os
import shutil
import time
from pathlib import Path

import pytest

from catalog.install.test_made import ENTRY, MAKE
from commands import passable_folder
from prony.catalog.install.child import Children
from prony.catalog.install.environment import EnvironmentRequest
from prony.catalog.install.prepare import prepare
from prony.catalog.install.seal import seal, sealed_copy
from prony.catalog.install.uv import open_uv
from prony.catalog.schema.loader import load_server
from prony.core.errors import HostError
from prony.core.users import RunAs, builder_for, generator_for, refuse_open_cache, resolve_user

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it changes users")


@pytest.fixture
def folder():
    with passable_folder() as found:
        yield found


@pytest.fixture
def user(folder, monkeypatch):
    monkeypatch.setenv("PRONY_CACHE", str(folder / "cache"))
    return resolve_user()


@pytest.fixture
def request_of(folder):
    file = folder / "mine.toml"
    file.write_text(ENTRY)
    (folder / "mine").mkdir()
    (folder / "mine" / "make.sh").write_text(MAKE + 'mkdir "$2/sub"; ln -s server "$2/sub/link"\n')
    (folder / "mine" / "text").write_text("serve\n")
    return EnvironmentRequest("mine", load_server(file))


def prepared(user, request):
    told = []
    found = prepare([request], user, told.append)[request.key]
    return found, told


def writable_by(user, folder):
    """Return the entries that ``user`` may change, by owner and mode; links have no mode of their own."""
    found = []
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        open_to_all = not path.is_symlink() and status.st_mode & 0o022
        if status.st_uid == user.uid or open_to_all:
            found.append(path)
    return found


@needs_root
def test_who_runs_subjects_can_write_nothing_of_what_was_built(user, request_of):
    built, _ = prepared(user, request_of)
    assert writable_by(user, built.build.parent) == []
    assert writable_by(builder_for(user), built.build.parent) == []


@needs_root
def test_who_runs_and_who_builds_cannot_enter_the_store_of_wheels(user, request_of):
    prepared(user, request_of)
    children = Children(user)
    open_uv(children)
    theirs = (user.cache / "store").stat()
    assert (theirs.st_uid, theirs.st_mode & 0o777) == (children.keeper.uid, 0o700)
    assert writable_by(user, user.cache) == []


@needs_root
def test_three_users_build_run_and_send(user):
    assert len({user.uid, builder_for(user).uid, generator_for(user).uid, 0}) == 4


def test_an_ordinary_user_is_all_of_them():
    me = RunAs("me", 1000, 1000, False, Path("/nowhere"))
    assert builder_for(me) == generator_for(me) == me


def test_what_was_built_has_no_write_permission_for_anybody(user, request_of):
    built, _ = prepared(user, request_of)
    modes = {one.lstat().st_mode & 0o222 for one in built.build.rglob("*") if not one.is_symlink()}
    assert modes == {0}


@pytest.mark.parametrize("how", ["contents", "mode", "new", "gone", "back", "link"])
def test_what_was_changed_is_built_again_and_told(user, request_of, how):
    built, _ = prepared(user, request_of)
    file = built.build / "server"
    built.build.chmod(0o755)
    match how:
        case "contents":
            file.chmod(0o644)
            file.write_text("bad\n")
        case "mode":
            file.chmod(0o4755)
        case "new":
            (built.build / "sitecustomize.py").write_text("")
        case "gone":
            file.unlink()
        case "link":
            (built.build / "sub").chmod(0o755)
            (built.build / "sub" / "link").unlink()
            (built.build / "sub" / "link").symlink_to("/tmp/bad")
        case "back":
            # The same bytes, mode, size and time of modification as before.
            before = file.stat()
            file.chmod(0o644)
            file.write_text("serve\n")
            os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            file.chmod(before.st_mode & 0o777)
            built.build.chmod(0o555)
    again, told = prepared(user, request_of)
    assert again == built
    assert (built.build / "server").read_text() == "serve\n"
    (building,) = [one for one in told if one.state == "building"]
    assert building.why.startswith("it was changed after it had been built, last `")
    assert [one.state for one in prepared(user, request_of)[1]] == ["queued", "ready"]


def test_what_was_built_the_old_way_is_not_used(user, request_of):
    built, _ = prepared(user, request_of)
    old = built.build.parent.with_name(built.build.parent.name.removesuffix(f"-{user.name}"))
    assert old.name != built.build.parent.name
    built.build.parent.rename(old)
    assert prepared(user, request_of)[1][1].state == "building"


@needs_root
def test_another_user_has_what_it_runs_built_for_itself(user, request_of, folder):
    other = RunAs("bin", 2, 2, True, user.cache)
    assert prepared(user, request_of)[0].build != prepared(other, request_of)[0].build


@needs_root
def test_a_hard_link_to_a_file_of_another_user_is_refused(user, request_of, folder):
    from prony.catalog.install.seal import seal

    secret = folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    made = folder / "made"
    made.mkdir()
    builder = builder_for(user)
    os.chown(made, builder.uid, builder.gid)
    os.link(secret, made / "x")
    with pytest.raises(ValueError, match="belongs to another user"):
        seal(made, builder.uid)
    assert secret.stat().st_mode & 0o777 == 0o600


def deep(place):
    for _ in range(250):
        place /= "d"
        place.mkdir()


REFUSED = {
    "a pipe with a line in its name": lambda place: os.mkfifo(place / "a\nb"),
    "folders of any depth": deep,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_product_is_refused_in_one_line(tmp_path, what):
    (tmp_path / "made").mkdir()
    REFUSED[what](tmp_path / "made")
    with pytest.raises(ValueError, match=r"neither a file|deeper than 200") as refused:
        seal(tmp_path / "made", os.geteuid())
    assert str(refused.value).isprintable()


def test_a_program_that_takes_its_owners_rights_is_sealed_without_them(tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "program").touch()
    (tmp_path / "made" / "program").chmod(0o6777)
    (tmp_path / "made" / "-rf\n\udcff").mkdir(0o7777)
    assert seal(tmp_path / "made", os.geteuid()).entries == 3
    assert {path.stat().st_mode & 0o7777 for path in (tmp_path / "made").iterdir()} == {0o555}


@needs_root
def test_a_cache_that_who_runs_subjects_could_exchange_is_refused(user, folder):
    os.chown(folder, user.uid, user.gid)
    with pytest.raises(HostError) as caught:
        refuse_open_cache(user)
    assert f"who can change `{folder}`" in caught.value.message
    os.chown(folder, 0, 0)
    refuse_open_cache(user)
    folder.chmod(0o777)
    with pytest.raises(HostError):
        refuse_open_cache(user)
    folder.chmod(0o1777)
    refuse_open_cache(user)


def test_the_copy_of_an_app_that_was_changed_is_made_anew(user):
    from prony.catalog.install.prepare import materialise_app
    from prony.catalog.schema.loader import load_catalog

    app = load_catalog().app("hello")
    copy = materialise_app(app, user)
    file = next(one for one in copy.iterdir() if one.is_file())
    text = file.read_bytes()
    assert not file.stat().st_mode & 0o222
    copy.chmod(0o755)
    (copy / "more.py").write_text("")
    file.chmod(0o644)
    file.write_text("bad")
    assert materialise_app(app, user) == copy
    assert file.read_bytes() == text
    assert not (copy / "more.py").exists()


@pytest.mark.slow
def test_the_state_of_two_hundred_thousand_entries_takes_a_second(folder):
    from prony.catalog.install.seal import read_tree

    for place in range(2000):
        inner = folder / "tree" / f"package{place // 50}" / f"module{place}"
        inner.mkdir(parents=True)
        for file in range(99):
            (inner / f"some_module_of_a_name_{file}.py").touch()
    took = []
    for _ in range(3):
        began = time.perf_counter()
        tree = read_tree(folder / "tree")
        took.append(time.perf_counter() - began)
    print(f"{tree.entries} entries: {min(took):.2f} s")
    assert tree.entries > 200_000
    assert min(took) < 1.0
    shutil.rmtree(folder / "tree")


def test_the_draft_of_a_copy_that_was_never_finished_goes_with_the_next(folder):
    target = folder / "copies" / "app"
    left = target.with_name(".draft-app-a1b2c3d4")
    left.mkdir(parents=True)
    (left / "half").touch()
    sealed_copy(target, lambda draft: (draft / "whole").touch())
    assert (target / "whole").exists()
    assert not left.exists()


def test_whatever_the_umask_others_reach_what_was_made_first(folder):
    before = os.umask(0o077)
    try:
        sealed_copy(folder / "a" / "cache" / "copies" / "app", lambda draft: (draft / "file").touch())
    finally:
        os.umask(before)
    made = ("a", "a/cache", "a/cache/copies")
    assert [(folder / one).stat().st_mode & 0o777 for one in made] == [0o755] * 3

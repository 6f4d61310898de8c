"""Apps: what identifies them, and where servers read them."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from prony.catalog.install.prepare import materialise_app
from prony.catalog.schema.apps import folder_digest, user_app
from prony.catalog.schema.loader import load_catalog
from prony.core.errors import UsageError
from prony.core.users import RunAs
from prony.model.subject import Interface


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hello.py").write_text("app = 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    return tmp_path


@pytest.fixture
def user(tmp_path_factory):
    return RunAs("nobody", 65534, 65534, True, tmp_path_factory.mktemp("cache"))


def test_the_digest_changes_with_the_content_of_a_python_file(folder):
    before = folder_digest(folder)
    (folder / "hello.py").write_text("app = 2\n")
    assert folder_digest(folder) != before


def test_the_digest_changes_with_the_name_of_a_python_file(folder):
    before = folder_digest(folder)
    (folder / "hello.py").rename(folder / "hallo.py")
    assert folder_digest(folder) != before


@pytest.mark.parametrize(
    "name", ["notes.txt", ".git/hook.py", "__pycache__/x.py", ".venv/lib/y.py", "node_modules/z.py"]
)
def test_the_digest_leaves_out_what_is_not_the_app(folder, name):
    before = folder_digest(folder)
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x = 1\n")
    assert folder_digest(folder) == before


def test_the_digest_is_the_same_elsewhere(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "package").mkdir()
    (other / "package" / "__init__.py").write_text("")
    (other / "hello.py").write_text("app = 1\n")
    assert folder_digest(other) == folder_digest(folder)


def test_a_dangling_link_does_not_disturb(folder):
    (folder / "gone.py").symlink_to(folder / "nowhere.py")
    assert folder_digest(folder)


def test_a_users_app_is_a_module_of_its_folder(folder):
    app = user_app("hello:app", folder, Interface.WSGI)
    assert (app.name, app.targets, app.folder) == ("hello", {Interface.WSGI: "hello:app"}, str(folder))
    assert user_app("package:make.app", folder, Interface.ASGI).name == "package"


@pytest.mark.parametrize(
    "target", ["hello", "hello:", ":app", "hello app:app", "hello:app;x", "hello.py:app()", "../x:app"]
)
def test_a_target_of_another_form_is_refused(folder, target):
    with pytest.raises(UsageError, match="expected `module:attribute`"):
        user_app(target, folder, Interface.WSGI)


def test_a_page_in_php_is_a_file_of_its_folder(folder):
    (folder / "public").mkdir()
    (folder / "public" / "index.php").write_text("<?php\n")
    app = user_app("public/index.php", folder, Interface.PHP)
    assert (app.name, app.targets, app.folder) == ("index", {Interface.PHP: "index.php"}, str(folder))
    assert app.root == "public"
    with pytest.raises(UsageError, match="expected a page in PHP"):
        user_app("absent.php", folder, Interface.PHP)


def test_a_module_that_is_not_there_is_refused(folder):
    with pytest.raises(UsageError, match="has no module `absent`"):
        user_app("absent:app", folder, Interface.WSGI)


def test_a_folder_that_is_not_there_is_refused(folder):
    with pytest.raises(UsageError, match="is not a folder"):
        user_app("hello:app", folder / "absent", Interface.WSGI)


def test_a_built_in_app_is_copied_to_where_servers_can_read_it(user):
    app = load_catalog().app("hello")
    copy = materialise_app(app, user)
    assert copy.is_relative_to(user.cache)
    assert (copy / "hello.py").read_text().startswith('"""The smallest WSGI application')
    assert (copy / "hello.py").stat().st_mode & 0o777 == 0o444
    assert materialise_app(app, user) == copy
    assert [child.name for child in copy.parent.iterdir() if child.is_dir()] == [copy.name]


def test_a_users_own_folder_is_used_as_it_is(folder, user):
    mine = replace(user, drop=False)
    assert materialise_app(user_app("hello:app", folder, Interface.WSGI), mine) == folder


def test_a_module_that_is_closed_to_the_user_is_named(user):
    with TemporaryDirectory(prefix="prony-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "open.py").write_text("app = 1\n")
        (folder / "closed.py").write_text("KEY = 1\n")
        (folder / "closed.py").chmod(0o600)
        with pytest.raises(UsageError, match=r"`.*closed\.py`\)"):
            materialise_app(user_app("open:app", folder, Interface.WSGI), user)


def test_a_folder_that_is_closed_to_the_user_is_named(folder, user):
    folder.chmod(0o700)
    with pytest.raises(UsageError, match="servers run as the user `nobody`, who cannot read") as caught:
        materialise_app(user_app("hello:app", folder, Interface.WSGI), user)
    assert "--run-as" in caught.value.hint

"""What an app's folder declares, and what of it is locked."""

import json

import pytest

from prony.catalog.discover.dependencies import find_dependencies
from prony.core.errors import UsageError

PROJECT = '[project]\nname = "shop"\nversion = "1"\ndependencies = ["flask>=3"]\n'

UV_LOCK = """\
version = 1

[[package]]
name = "flask"
version = "3.0.3"
source = { registry = "https://example.org/simple" }

[[package]]
name = "numpy"
version = "1.26.4"
source = { registry = "https://example.org/simple" }
resolution-markers = ["python_full_version < '3.12'", "sys_platform == 'x'"]

[[package]]
name = "numpy"
version = "2.1.0"
source = { registry = "https://example.org/simple" }
resolution-markers = ["python_full_version >= '3.12'"]

[[package]]
name = "shop"
version = "1"
source = { virtual = "." }
"""

POETRY = """\
[tool.poetry.dependencies]
python = "^3.11"
Flask = {version = "^3.0", extras = ["async"]}
humanize = "*"
redis = {version = "^5", optional = true}
"""

POETRY_LOCK = """\
[[package]]
name = "flask"
version = "3.0.3"
optional = false

[[package]]
name = "mine"
version = "0.1"
[package.source]
type = "git"
url = "https://example.org/mine"
"""

PIPFILE_LOCK = json.dumps(
    {
        "default": {
            "flask": {"version": "==3.0.3", "extras": ["async"], "hashes": ["sha256:00"]},
            "colorama": {"version": "==0.4.6", "markers": "sys_platform == 'win32'"},
        },
        "develop": {"pytest": {"version": "==8.0"}},
    }
)


def test_a_plain_file_is_read_by_uv_as_it_is():
    found = find_dependencies({"requirements.txt": "flask"}.get)
    assert found is not None
    assert (found.source, found.file, found.constraints) == ("requirements.txt",) * 2 + ((),)


def test_a_project_without_a_lock_is_read_by_uv():
    found = find_dependencies({"pyproject.toml": PROJECT}.get)
    assert found is not None
    assert found.file == "pyproject.toml"


def test_a_project_file_of_tools_alone_declares_nothing():
    assert find_dependencies({"pyproject.toml": "[tool.ruff]\nline-length = 100\n"}.get) is None


def test_what_uv_locked_constrains_the_project_with_a_marker_for_each_fork():
    found = find_dependencies({"pyproject.toml": PROJECT, "uv.lock": UV_LOCK, "requirements.txt": "x"}.get)
    assert found is not None
    assert (found.source, found.file) == ("uv.lock", "pyproject.toml")
    assert found.constraints == (
        "flask==3.0.3",
        "numpy==1.26.4 ; (python_full_version < '3.12') or (sys_platform == 'x')",
        "numpy==2.1.0 ; (python_full_version >= '3.12')",
    )


def test_what_poetry_locked_constrains_the_dependencies_that_it_declares():
    found = find_dependencies({"pyproject.toml": POETRY, "poetry.lock": POETRY_LOCK}.get)
    assert found is not None
    assert found.lines == ("Flask[async]", "humanize")
    assert found.constraints == ("flask==3.0.3",)


def test_what_pipenv_locked_for_production_is_needed_exactly():
    found = find_dependencies({"Pipfile.lock": PIPFILE_LOCK}.get)
    assert found is not None
    assert found.lines == ("flask[async]==3.0.3", "colorama==0.4.6 ; sys_platform == 'win32'")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"Pipfile.lock": "{"}, "cannot read `Pipfile.lock`"),
        ({"Pipfile.lock": "[" * 100_000}, "cannot read `Pipfile.lock`"),
        ({"uv.lock": "x = " + "[" * 100_000}, "cannot read `uv.lock`"),
        ({"pyproject.toml": "x ="}, "cannot read `pyproject.toml`"),
        ({"uv.lock": ""}, "`uv.lock` has no `pyproject.toml` beside it"),
        ({"Pipfile.lock": '{"default": {"mine": {"path": "../mine"}}}'}, "the dependency `mine` is a path"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(files, message):
    with pytest.raises(UsageError, match=message):
        find_dependencies(files.get)


def test_the_lock_of_pdm_holds_versions_but_not_what_lies_elsewhere():
    lock = (
        '[[package]]\nname = "flask"\nversion = "3.1.2"\n'
        '[[package]]\nname = "own"\nversion = "1"\npath = "./own"\n'
    )
    found = find_dependencies({"pdm.lock": lock, "pyproject.toml": "[project]\nname = 'a'"}.get)
    assert (found.source, found.file, found.constraints) == ("pdm.lock", "pyproject.toml", ("flask==3.1.2",))


def test_what_a_dockerfile_installs_by_name_is_declared():
    image = (
        "FROM python\n# RUN pip install no\nRUN pip install -U pip wheel && pip install --no-cache-dir \\\n"
        "  -i https://x.example/s 'flask>=3' gunicorn[gevent]==23.0 ./mine.whl\n"
    )
    found = find_dependencies({"Dockerfile": image}.get)
    assert (found.lines, found.file) == (("flask>=3", "gunicorn[gevent]==23.0"), None)
    assert found.source == "`pip install` in Dockerfile"
    # A file says it better.
    assert find_dependencies({"Dockerfile": image, "requirements.txt": ""}.get).file == "requirements.txt"
    assert find_dependencies({"Dockerfile": "RUN pip install -r needs.txt"}.get) is None

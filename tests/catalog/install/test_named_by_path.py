"""Requirements that name files, folders and other places: an app's own packages, and a stranger's tries."""

import os
import socket
import threading
import time
import zipfile
from dataclasses import replace

import pytest

from commands import passable_folder
from prony.catalog.install.environment import Declared, Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import prepare
from prony.catalog.schema.loader import load_catalog
from prony.core.units import MIB, SECOND_NS
from prony.core.users import BuildRules, resolve_user
from prony.sandbox.building import why_no_builds

pytestmark = pytest.mark.skipif(why_no_builds() is not None, reason=f"no namespaces: {why_no_builds()}")

WHEEL = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PROJECT = """
[project]
name = "{name}"
version = "1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import os, zipfile
def build_wheel(folder, config=None, metadata=None, files=None):
    with zipfile.ZipFile(os.path.join(folder, "{name}-1-py3-none-any.whl"), "w") as wheel:
        for path, text in (files or {{"{name}.py": "x = 1"}}).items():
            wheel.writestr(path, text)
        wheel.writestr("{name}-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: 1\\n")
        wheel.writestr("{name}-1.dist-info/WHEEL", {wheel!r})
        wheel.writestr("{name}-1.dist-info/RECORD", "")
    return "{name}-1-py3-none-any.whl"
def build_editable(folder, config=None, metadata=None):
    return build_wheel(folder, files={{"{name}.pth": os.path.dirname(os.path.abspath(__file__))}})
"""


@pytest.fixture
def user():
    with passable_folder() as folder:
        yield replace(resolve_user(), cache=folder / "cache")


@pytest.fixture
def app(user):
    folder = user.cache.parent / "app"
    folder.mkdir()
    return folder


def wheel(folder, name, files=None, version="1"):
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as packed:
        for path, text in (files or {f"{name}.py": "x = 1"}).items():
            packed.writestr(path, text)
        info = f"{name}-{version}.dist-info"
        packed.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        packed.writestr(f"{info}/WHEEL", WHEEL)
        packed.writestr(f"{info}/RECORD", "")
    return file


def source(folder, name):
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "pyproject.toml").write_text(PROJECT.format(name=name))
    (folder / name / "backend.py").write_text(BACKEND.format(name=name, wheel=WHEEL))
    (folder / name / f"{name}.py").write_text("x = 1\n")


def built(user, app, text, server="wsgiref"):
    (app / "requirements.txt").write_text(text)
    declared = Declared(app / "requirements.txt")
    request = EnvironmentRequest("x", load_catalog().server(server), declared=declared)
    return prepare([request], user, lambda _: None)["x"]


def test_a_wheel_beside_the_requirements_is_installed_however_it_is_named(user, app):
    for name in ("one", "two", "three", "four", "five", "six"):
        wheel(app / "wheels", name)
    wheel(app, "bare")
    lines = [
        *("./wheels/one-1-py3-none-any.whl", "wheels/two-1-py3-none-any.whl", "bare-1-py3-none-any.whl"),
        *("three @ file:wheels/three-1-py3-none-any.whl", f"file://{app}/wheels/four-1-py3-none-any.whl"),
        "five @ file://${PROJECT_ROOT}/wheels/five-1-py3-none-any.whl",
        "-r more/more.txt",
    ]
    (app / "more").mkdir()
    (app / "more" / "more.txt").write_text("./wheels/six-1-py3-none-any.whl\n")
    found = built(user, app, "\n".join(lines))
    assert isinstance(found, Environment), found
    assert set(found.packages) == {"one", "two", "three", "four", "five", "six", "bare"}


def test_a_wheel_that_has_changed_is_installed_anew(user, app):
    wheel(app, "mine")
    first = built(user, app, "mine-1-py3-none-any.whl\n")
    wheel(app, "mine", {"mine.py": "x = 2"})
    second = built(user, app, "mine-1-py3-none-any.whl\n")
    assert isinstance(second, Environment), second
    assert first.python != second.python
    assert next(second.bin.parent.glob("lib/*/site-packages/mine.py")).read_text() == "x = 2"


def test_a_folder_beside_the_requirements_is_installed_editable_too(user, app):
    wheel(app, "wheel")
    for name in ("plain", "editable", "addressed"):
        source(app, name)
    lines = ["./plain", "-e ./editable", "addressed @ file:addressed", "./wheel-1-py3-none-any.whl"]
    found = built(user, app, "\n".join(lines))
    assert isinstance(found, Environment), found
    assert set(found.packages) == {"plain", "editable", "addressed", "wheel"}
    (path,) = found.bin.parent.glob("lib/*/site-packages/editable.pth")
    assert path.read_text() == str(app / "editable")


def test_the_apps_own_folder_is_installed_editable(user, app):
    source(app.parent, "app")
    found = built(user, app, "-e .\n")
    assert isinstance(found, Environment), found
    assert set(found.packages) == {"app"}
    assert sorted(path.name for path in app.iterdir()) == [
        *("app.py", "backend.py", "pyproject.toml", "requirements.txt")
    ]


def rarely(cases, often):
    """Return the cases; each is a build, so that those that are not tried often are of the slow layer."""
    return [pytest.param(case, marks=() if case in often else pytest.mark.slow) for case in cases]


# --- a stranger's tries -----------------------------------------------------------------------------------

CLIMBS = (
    "../../../../MARK",
    "{outside}/MARK",
    "evil-1.data/scripts/../../../../../MARK",
    "evil-1.data/data/{outside}/MARK",
    "evil-1.data/data/../../MARK",
    "evil-1.data/headers/../../../../../../MARK",
)


@pytest.mark.parametrize("climb", rarely(CLIMBS, CLIMBS[:2]))
def test_a_wheel_writes_nothing_beside_its_environment(user, app, climb):
    outside = user.cache.parent / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    wheel(app, "evil", {climb.format(outside=outside): "planted", "evil.py": "x = 1"})
    found = built(user, app, "./evil-1-py3-none-any.whl\n")
    environments = set(user.cache.glob("environments/*/venv"))
    marked = [path for path in user.cache.parent.rglob("MARK") if not environments & set(path.parents)]
    assert marked == []
    assert isinstance(found, Environment) or ("cannot be installed" in found.reason and said(found))


def said(found):
    """Return the reason: one line that can be printed, of a length that is read."""
    assert isinstance(found, Unavailable), found
    assert found.reason.isprintable()
    assert len(found.reason) < 600
    return found.reason


@pytest.fixture
def asked():
    """Yield the port of a listener, and what it was asked."""
    got = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    got.append(connection.recv(200))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], got
        server.shutdown(socket.SHUT_RDWR)


LINES = {
    "a file of root's": "-r {secret}",
    "constraints of root's": "-c {secret}",
    "the accounts": "-r ../../../../../../../../etc/passwd",
    "a device": "-r /dev/zero",
    "a pipe": "-r pipe",
    "itself": "-r requirements.txt",
    "another index": "--index-url http://127.0.0.1:{port}/simple\nsix",
    "one more index": "--extra-index-url http://127.0.0.1:{port}/simple\nsix",
    "links": "--find-links http://127.0.0.1:{port}/x\nsix",
    "an address": "x @ http://127.0.0.1:{port}/x-1-py3-none-any.whl",
    "a repository": "x @ git+http://127.0.0.1:{port}/x",
    "a repository by ssh": "x @ git+ssh://root@127.0.0.1:{port}/x",
    "a command of git's": "x @ git+ext::sh -c 'touch {ran}'",
    "no package": "x @ file:///etc/shadow",
    "a folder of root's": "-e /root",
    "a wheel that is not there": "./no-1-py3-none-any.whl",
    "a wheel that is none": "./text-1-py3-none-any.whl",
    "no text": "\0\0\0",
    "a line of two million letters": "six" + "x" * 2_000_000,
    "a line that goes on 100,000 times": "six \\\n" * 100_000,
}
OFTEN = (
    "a file of root's",
    "a device",
    "another index",
    "an address",
    "a command of git's",
    "a wheel that is none",
)
SMALL = BuildRules(memory_bytes=512 * MIB, time_ns=5 * SECOND_NS)


@pytest.mark.parametrize("name", rarely(LINES, OFTEN))
def test_a_line_that_leads_elsewhere_ends_in_one_line_and_reaches_nothing(user, app, asked, name):
    port, got = asked
    secret, ran = app.parent / "secret.txt", app.parent / "ran"
    secret.write_text("a-word-of-root==1\n")
    secret.chmod(0o600)
    os.mkfifo(app / "pipe")
    (app / "text-1-py3-none-any.whl").write_text("text")
    begun_s = time.monotonic()
    text = LINES[name].format(secret=secret, port=port, ran=ran)
    found = built(replace(user, build=SMALL), app, text)
    assert time.monotonic() - begun_s < 60
    assert name == "itself" or said(found)
    assert (got, ran.exists()) == ([], False)
    if os.geteuid() == 0 and isinstance(found, Unavailable):
        assert "a-word-of-root" not in found.reason + found.log


def test_requirements_of_a_terabyte_are_refused_by_their_size(user, app):
    (app / "large.txt").touch()
    os.truncate(app / "large.txt", 1 << 40)
    request = EnvironmentRequest("x", load_catalog().server("wsgiref"), declared=Declared(app / "large.txt"))
    found = prepare([request], user, lambda _: None)["x"]
    assert "has 1,024 GiB; expected at most 16.0 MiB" in said(found)


AFTER = "import atexit, os, sys; atexit.register(lambda: (sys.stdout.flush(), os.write(1, %r)))"
SPEAKS = {
    "an end before": "import os; os._exit(0)",
    "a line after": AFTER % b"x\n",
    "another report": AFTER % b'{"missing": [], "packages": 5}\n',
    "a list": AFTER % (b"[" * 100_000 + b"\n"),
    "a version without an end": AFTER
    % (b'{"missing": [], "packages": {"x": "' + b"9" * 5000 + b'"}, "interpreter": ""}\n'),
    "output without an end": "import os\nwhile True: os.write(1, bytes(65536))",
}


@pytest.mark.parametrize("how", rarely(SPEAKS, ("a line after", "output without an end")))
def test_what_speaks_for_its_environment_is_refused_in_one_line(user, app, how, monkeypatch):
    monkeypatch.setattr("prony.sandbox.building._MOST_OUTPUT_BYTES", MIB)
    # Of `wsgiref` nothing is imported: its module is in Python. A line of a .pth file is executed.
    wheel(app, "evil", {"evil.py": SPEAKS[how], "evil.pth": "import evil"})
    small = BuildRules(disk_bytes=64 * MIB, time_ns=20 * SECOND_NS)
    said(built(replace(user, build=small), app, "./evil-1-py3-none-any.whl\n"))


@pytest.mark.slow
def test_a_wheel_that_calls_itself_as_a_locked_package_is_in_no_other_environment(user, app):
    request = EnvironmentRequest("x", load_catalog().server("gunicorn"), app_requirements=())
    version = prepare([request], user, lambda _: None)["x"].packages["gunicorn"]
    fresh = replace(user, cache=user.cache.with_name("fresh"))
    files = {"gunicorn/__init__.py": "STRANGER = 1", "evil.pth": "import os  # STRANGER"}
    named = wheel(app, "gunicorn", files, version)
    built(fresh, app, f"./{named.name}\n", "gunicorn")
    other = app.with_name("other")
    other.mkdir()
    own = prepare([request], fresh, lambda _: None)["x"]
    for found in (own, built(fresh, other, "itsdangerous\n", "gunicorn")):
        assert isinstance(found, Environment), found
        (package,) = found.bin.parent.glob("lib/*/site-packages/gunicorn")
        assert "STRANGER" not in (package / "__init__.py").read_text()
        assert list(package.parent.glob("evil.pth")) == []

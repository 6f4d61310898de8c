"""What a stranger's package can do while it is built: one hook, in the sandbox and outside of it."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from commands import eventually, passable_folder
from prony.catalog.install.child import Children
from prony.catalog.install.environment import Declared, Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import prepare
from prony.catalog.schema.loader import load_catalog
from prony.core.users import SUBJECT_PATH, BuildRules, own_folder, resolve_user
from prony.sandbox import building
from prony.sandbox.building import BuildTask, why_no_builds

pytestmark = pytest.mark.skipif(why_no_builds() is not None, reason=f"no namespaces: {why_no_builds()}")

PROJECT = """
[project]
name = "evil"
dynamic = ["version"]
[build-system]
requires = []
build-backend = "hook"
backend-path = ["."]
"""
ATTACK = r"""
import json, os, socket, sys, zipfile
TARGETS = json.loads(%r)
def tries():
    done = []
    for path in TARGETS["files"]:
        try:
            with open(path, "a") as file: file.write("planted"); done.append(path)
        except OSError: pass
    try:
        socket.create_connection(("127.0.0.1", TARGETS["port"]), 2).close(); done.append("connected")
    except OSError: pass
    done += ["process seen"] if os.path.exists("/proc/%%d/status" %% TARGETS["pid"]) else []
    done += ["reads"] if os.access(TARGETS["secret"], os.R_OK) else []
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 100)
            os.execv(sys.executable, [TARGETS["name"], "-c", "import time; time.sleep(60)"])
        os._exit(0)
    return done
"""
HOOK = (
    ATTACK
    + r"""
WHEEL = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
META = "Metadata-Version: 2.1\nName: evil\nVersion: 1\n"
def prepare_metadata_for_build_wheel(folder, config=None):
    tries(); info = os.path.join(folder, "evil-1.dist-info"); os.makedirs(info, exist_ok=True)
    open(os.path.join(info, "METADATA"), "w").write(META)
    open(os.path.join(info, "WHEEL"), "w").write(WHEEL)
    return "evil-1.dist-info"
def build_wheel(folder, config=None, metadata=None):
    with zipfile.ZipFile(os.path.join(folder, "evil-1-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("evil.json", json.dumps(tries()))
        wheel.writestr("evil-1.dist-info/METADATA", META)
        wheel.writestr("evil-1.dist-info/WHEEL", WHEEL)
        wheel.writestr("evil-1.dist-info/RECORD", "")
    return "evil-1-py3-none-any.whl"
"""
)


@pytest.fixture
def user():
    with passable_folder() as folder:
        yield replace(resolve_user(), cache=folder / "cache")


def built(user, project):
    request = EnvironmentRequest(
        "x", load_catalog().server("wsgiref"), declared=Declared(project / "requirements.txt")
    )
    return prepare([request], user, lambda _: None)["x"]


def app_of(user, targets):
    """Write an app whose requirements have a package of its own, with the hook."""
    app = user.cache.parent / "app"
    (app / "evil").mkdir(parents=True)
    (app / "requirements.txt").write_text("./evil\n")
    (app / "evil" / "pyproject.toml").write_text(PROJECT)
    (app / "evil" / "hook.py").write_text(HOOK % json.dumps(targets))
    return app


def processes(name):
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in found.splitlines() if line.split()[1] == name]


@pytest.fixture
def targets(user):
    """What no build may reach: a file, a listener, this process, the store, and the name of what stays."""
    name = f"left-of-{os.getpid()}"
    open_to_all = user.cache.parent / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield {
            **{"files": [str(open_to_all / "file")], "port": listener.getsockname()[1]},
            **{"pid": os.getpid(), "secret": str(user.cache / "store"), "name": name},
        }
    for pid in processes(name):
        os.kill(pid, 9)


@pytest.fixture
def attacked(user, targets):
    """Return a function that builds the app by some rules, and returns what its hook could do."""
    app = app_of(user, targets)

    def attack(rules):
        found = built(replace(user, build=rules), app)
        assert isinstance(found, Environment), found
        (report,) = found.bin.parent.glob("lib/*/site-packages/evil.json")
        left = processes(targets["name"])
        return {*json.loads(report.read_text()), *(["process left"] if left else [])}

    return attack


def test_a_hook_writes_reaches_sees_and_leaves_nothing(attacked):
    # An ordinary user's builds read what that user can, the store of wheels too, and cannot write it.
    assert attacked(BuildRules()) <= ({"reads"} if os.geteuid() else set())


def test_where_it_is_trusted_the_same_hook_does_all_of_it(attacked, user):
    did = attacked(BuildRules(trusted=True))
    assert {str(user.cache.parent / "open" / "file"), "connected", "process seen"} <= did
    assert "process left" not in did


SCRIPTS = {
    "npm": """
        mkdir evil && mv attack.py evil
        cd evil && echo '{"name": "evil", "version": "1.0.0", "scripts": {"install": "python3 attack.py"}}' \\
            > package.json && cd ..
        npm install ./evil --install-links --offline --foreground-scripts --no-audit --no-fund""",
    "go": """
        printf 'module x\\ngo 1.19\\n' > go.mod
        printf 'package main\\n//go:generate python3 attack.py\\nfunc main() {}\\n' > main.go
        GO111MODULE=on go generate""",
    "make": "printf 'all:\\n\\t@python3 attack.py\\n' > Makefile && make -s",
}


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("tool", SCRIPTS)
def test_scripts_of_other_tools_do_of_it_what_a_hook_does(user, targets, tool, trusted):
    path = f"{SUBJECT_PATH}:/usr/local/go/bin"
    if shutil.which(tool, path=path) is None:
        pytest.skip(f"`{tool}` is not installed where a build finds it")
    children = Children(replace(user, build=BuildRules(trusted=trusted)))
    place = own_folder(user.cache.parent / "place", children.builder)
    (place / "attack.py").write_text(ATTACK % json.dumps(targets) + "print('did', json.dumps(tries()))\n")
    task = BuildTask(["/bin/sh", "-ec", SCRIPTS[tool]], {"PATH": path}, place, (place,))
    done = children.build(task)
    (did,) = (line.split(" ", 1)[1] for line in done.output.splitlines() if line.startswith("did "))
    outside = {targets["files"][0], "connected", "process seen"}
    assert set(json.loads(did)) & outside == (outside if trusted else set()), done.log
    assert processes(targets["name"]) == []


PRONY = """\
import os, sys
from pathlib import Path
from prony.catalog.install.child import Children
from prony.core.users import resolve_user
from prony.sandbox.building import BuildTask
children, task = Children(resolve_user()), BuildTask(sys.argv[2:], {"PATH": os.defpath}, Path("/"))
if sys.argv[1] == "run":
    children.run(task.command, task.environment, task.folder)
else:
    getattr(children, sys.argv[1])(task)
"""
STAYS = """\
import os, sys
for _ in range(2): os.fork()
os.setsid() if os.getpid() != os.getpgrp() else None
os.execv(sys.executable, [sys.argv[1], "-c", "import time; time.sleep(60)"])
"""


@pytest.mark.parametrize("how", ["run", "tried", "build"])
def test_what_set_up_runs_ends_with_a_prony_that_is_killed(user, how):
    name = f"stays-of-{os.getpid()}-{how}"
    command = [sys.executable, "-c", PRONY, how, PYTHON, "-c", STAYS, name]
    with subprocess.Popen(command, env={**os.environ, "PRONY_CACHE": str(user.cache)}) as prony:
        assert eventually(lambda: len(processes(name)) == 4, timeout_s=20)
        prony.kill()
    killed_s = time.monotonic()
    assert eventually(lambda: processes(name) == [], timeout_s=10)
    assert time.monotonic() - killed_s < 2


@pytest.mark.parametrize("trusted", [False, True])
def test_no_build_finds_what_another_one_has_kept(user, trusted):
    children = Children(replace(user, build=BuildRules(trusted=trusted)))
    keep = "import os\nfor n in ('HOME', 'UV_CACHE_DIR'): os.makedirs(os.environ[n] + '/kept')\nprint('done')"
    task = BuildTask([PYTHON, "-c", keep], {"PATH": os.defpath}, user.cache.parent)
    assert [children.build(task).output for _ in range(2)] == ["done\n"] * 2
    assert list((user.cache / "run").iterdir()) == []


def test_what_is_kept_for_others_belongs_to_a_user_that_no_build_runs_as(user):
    if os.geteuid() != 0:
        pytest.skip("needs root: an ordinary user's builds are kept from it by their mounts")
    children = Children(user)
    assert len({children.keeper.uid, children.builder.uid, user.uid, 0}) == 4


def test_a_package_of_the_apps_own_is_found_beside_its_requirements(user):
    app = app_of(user, {"files": [], "port": 1, "pid": 1, "secret": "/", "name": "none"})
    found = built(user, app)
    assert isinstance(found, Environment), found
    assert found.packages == {"evil": "1"}


def test_two_apps_with_the_same_line_have_their_own_packages(user):
    targets = {"files": [], "port": 1, "pid": 1, "secret": "/", "name": "none"}
    app = app_of(user, targets)
    first = built(user, app)
    moved = app.rename(app.with_name("moved"))
    assert built(user, moved).python != first.python


def test_without_namespaces_what_must_be_built_is_refused(user, monkeypatch):
    monkeypatch.setattr("prony.catalog.install.child.why_no_builds", lambda: "no user namespaces")
    found = built(user, app_of(user, {"files": [], "port": 1, "pid": 1, "secret": "/", "name": "none"}))
    assert isinstance(found, Unavailable)
    assert "no user namespaces" in found.reason
    assert "--trust-build" in found.reason


# --- what a build would find beside its files -----------------------------------------------------------

FINDS = r"""
import ctypes, json, os, socket
found, libc, word = [], ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(100)
try:
    socket.socket(socket.AF_UNIX).connect(%r); found.append("socket")
except OSError: pass
try:
    os.write(os.open(%r, os.O_WRONLY | os.O_NOCTTY), b"x"); found.append("terminal")
except OSError: pass
key = libc.syscall(KEYCTL, 10, -3, b"user", b"prony-test", 0)
if key > 0 and libc.syscall(KEYCTL, 11, key, word, 100) > 0: found.append("key")
os.openpty()
print(json.dumps(found))
"""
WITH_A_KEY = """
import ctypes, dataclasses, os, sys
from pathlib import Path
from prony.catalog.install.child import Children
from prony.core.users import BuildRules, resolve_user
from prony.sandbox.building import BuildTask
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall(KEYCTL, 1, None) > 0
assert libc.syscall(ADD_KEY, b"user", b"prony-test", b"word", 4, -3) > 0
user = dataclasses.replace(resolve_user(), build=BuildRules(trusted=sys.argv[2] == "trusted"))
task = BuildTask(["/usr/bin/python3", "-c", sys.argv[1]], {"PATH": os.defpath}, Path("/"))
print(Children(user).build(task).output)
"""
NUMBERS = {"x86_64": {"KEYCTL": "250", "ADD_KEY": "248"}, "aarch64": {"KEYCTL": "219", "ADD_KEY": "217"}}


@pytest.mark.skipif(os.uname().machine not in NUMBERS, reason="the numbers of the calls are not known here")
@pytest.mark.parametrize("trusted", ["", "trusted"])
def test_a_build_finds_no_socket_terminal_or_key(user, trusted):
    path = str(user.cache.parent / "open.socket")
    main, side = os.openpty()
    scripts = [WITH_A_KEY, FINDS % (path, os.ttyname(side))]
    for name, number in NUMBERS[os.uname().machine].items():
        scripts = [script.replace(name, number) for script in scripts]
    # Of each what anybody may use: an ordinary user's are that user's own.
    with socket.socket(socket.AF_UNIX) as listening, os.fdopen(main, "rb"), os.fdopen(side, "rb"):
        listening.bind(path)
        listening.listen()
        for place in (path, os.ttyname(side)):
            Path(place).chmod(0o666)
        command = [sys.executable, "-c", *scripts, trusted]
        environment = {**os.environ, "PRONY_CACHE": str(user.cache)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # Nobody passes keys on, also to whom is trusted.
    assert json.loads(done.stdout) == (["socket", "terminal"] if trusted else []), done.stderr


def test_no_file_is_hidden_by_what_somebody_called_a_socket(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = Path(f"a\n0 2 0 10000 1 1 7 {PYTHON}")
    line.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as forging:
        forging.bind(str(line))
        assert PYTHON in building._UNIX_SOCKETS.read_text()
        assert PYTHON not in building._listening()


# --- ceilings ---------------------------------------------------------------------------------------------

PYTHON = "/usr/bin/python3"
EATS = {
    "memory": "kept = [bytearray(1 << 20) for _ in range(4096)]",
    "memory that is shared": "import mmap, time\nm = mmap.mmap(-1, 512 << 20)\n"
    "for at in range(0, 512 << 20, 4096): m[at] = 1\ntime.sleep(30)",
    "memory of nobody": "import os, time\nfor k in range(12): f = os.memfd_create('x'); "
    "[os.write(f, bytes(1 << 20)) for _ in range(60)]; os.dup(f)\ntime.sleep(30)",
    "time": "import time; time.sleep(60)",
    "disk": "import os, time; f = open(os.environ['HOME'] + '/x', 'wb')\n"
    "for _ in range(400): f.write(bytes(1 << 20)); f.flush(); time.sleep(.005)\ntime.sleep(30)",
}
RULES = BuildRules(memory_bytes=256 << 20, disk_bytes=64 << 20, time_ns=3_000_000_000, processes=30)


@pytest.mark.parametrize("what", EATS)
def test_a_build_that_takes_too_much_is_ended_and_told_how_to_have_more(user, what):
    rules = RULES if what == "time" else replace(RULES, time_ns=60_000_000_000)
    task = BuildTask([PYTHON, "-c", EATS[what]], {"PATH": os.defpath}, user.cache.parent)
    started = time.monotonic()
    done = Children(replace(user, build=rules)).build(task)
    assert done.status != 0
    assert time.monotonic() - started < 25
    # The kernel ends the write that would make one file too large before Prony sees the folder.
    assert f"--build-limits {what.split()[0]}=" in done.log or (
        what == "disk" and "File too large" in done.log
    )


def test_a_build_that_forks_without_end_is_held(user):
    forks = "import os\ntry:\n  while os.fork() or True: pass\nexcept OSError: print('held', flush=True)"
    task = BuildTask([PYTHON, "-c", forks], {"PATH": os.defpath}, user.cache.parent)
    done = Children(replace(user, build=RULES)).build(task)
    assert "held" in done.output or done.status != 0


def test_a_build_that_prints_without_end_does_not_fill_the_memory_of_prony(user, monkeypatch):
    monkeypatch.setattr("prony.sandbox.building._MOST_OUTPUT_BYTES", 1 << 20)
    task = BuildTask([PYTHON, "-c", "print('x' * (2 << 20))"], {"PATH": os.defpath}, user.cache.parent)
    done = Children(user).build(task)
    assert (done.ok, done.output) == (False, "")
    assert "it printed more than 1.00 MiB" in done.log


def test_a_command_whose_supervisor_was_killed_is_run_once_more(user):
    children, killed = Children(user), []

    def kill():
        assert eventually(lambda: bool(children._running))
        (supervisor,) = children._running
        assert eventually(lambda: supervisor.seen("started") is not None)
        os.kill(supervisor.pid, signal.SIGKILL)
        killed.append(supervisor.pid)

    killer = threading.Thread(target=kill)
    killer.start()
    done = children.run(("/bin/sh", "-c", "sleep 1; echo done"), {"PATH": os.defpath}, Path("/"))
    killer.join()
    assert (done.status, done.output, len(killed)) == (0, "done\n", 1)
    assert list((user.cache / "run").iterdir()) == []

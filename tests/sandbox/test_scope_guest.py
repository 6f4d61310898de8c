"""A scope from a real systemd, for users whose own group is not theirs: in a small guest, without KVM.

Needs what `guest` says, and systemd with its bus and its module of PAM: those of this machine are packed for
the guest. There a user logs in as one does by SSH, and Prony finds itself in the session's group.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.guest import SOURCE, Archive, Guest, missing_parts, python

pytestmark = pytest.mark.slow

BOOT_TIMEOUT_S = 480
SYSTEMD = Path("/usr/lib/systemd")

PROGRAMS = (
    *(SYSTEMD / name for name in ("systemd", "systemd-logind", "systemd-user-runtime-dir")),
    # From systemd 255 on it starts all services.
    SYSTEMD / "systemd-executor",
    *(Path("/usr/bin", name) for name in ("busctl", "systemctl", "systemd-run", "dbus-daemon")),
)
UNITS = {
    "system": (
        *("dbus.service", "dbus.socket", "systemd-logind.service", "user@.service", "user.slice"),
        *(
            "user-runtime-dir@.service",
            "user-.slice.d/10-defaults.conf",
            "user@.service.d/10-login-barrier.conf",
        ),
        *("basic.target", "sysinit.target", "sockets.target", "shutdown.target", "umount.target"),
        *("paths.target", "timers.target", "slices.target", "local-fs.target", "nss-user-lookup.target"),
    ),
    "user": (
        *("dbus.service", "dbus.socket", "app.slice", "session.slice", "background.slice"),
        *("basic.target", "default.target", "sockets.target", "shutdown.target", "exit.target"),
        *("paths.target", "timers.target", "systemd-exit.service"),
    ),
}
FILES = {
    "/etc/passwd": (
        "root:x:0:0::/:/bin/sh\nmessagebus:x:100:100::/:/bin/sh\n"
        "user:x:1000:1000::/home/user:/bin/sh\ntrusted:x:1001:1001::/:/bin/sh\nother:x:1002:1002::/:/bin/sh\n"
    ),
    "/etc/group": "root:x:0:\nmessagebus:x:100:\nuser:x:1000:\ntrusted:x:1001:\nother:x:1002:\n",
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/etc/os-release": "ID=guest\n",
    # As a server for SSH has it, but for the password.
    "/etc/pam.d/guest": "account required pam_permit.so\nsession required pam_systemd.so\n",
    "/etc/pam.d/systemd-user": "account required pam_permit.so\nsession required pam_systemd.so\n",
    # What an administrator may add for a user.
    "/etc/systemd/system/user@1001.service.d/cpus.conf": ("[Service]\nDelegate=cpu cpuset io memory pids\n"),
    "/etc/systemd/system/guest.target": "[Unit]\nRequires=basic.target guest.service\nAfter=basic.target\n",
    "/etc/systemd/system/guest.service": """[Unit]
Wants=dbus.socket systemd-logind.service
After=dbus.socket systemd-logind.service
[Service]
Type=oneshot
Environment=PYTHONUTF8=1
ExecStart={python} -S /guest.py
ExecStopPost=/bin/systemctl poweroff -ff
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
""",
}

# Without arguments it runs every case in a session, or without one, by itself.
GUEST = """
import sys
sys.path.insert(0, {source!r})
import encodings.idna, json, os, subprocess, time
from pathlib import Path
from prony import _engine
from prony.engine import child, process
from prony.engine.registry import open_engine
from prony.model.address import Address
from prony.model.launch import Launch
from prony.model.sandbox import Placement, SandboxChoice
from prony.model.workload import ClosedLoop, DurationStop, EngineChoice, Workload
from prony.core.users import resolve_user
from prony.sandbox import open_sandbox, process, supervisor
from prony.sandbox.groups import look
from prony.sandbox.cgroup.types import NoCgroups
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.choice import Wish, choose
from prony.sandbox.groups import open_groups
from prony.sandbox.journal import open_run
from prony.sandbox.choice import gain_namespaces

LIMITS = ("cpu.max", "memory.max", "pids.max")
CHOICE = SandboxChoice(cpu_quota=0.75, memory_bytes=2**26, pids=50)
SERVER = r'''
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    while connection.recv(65536):
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
'''

def own_group():
    return Path("/proc/self/cgroup").read_text().strip().partition("::")[2]

def opened(measure=False):
    before = own_group()
    plain = open_cgroups()
    chosen = choose(Wish(choice=CHOICE), look(("cgroup", "process")))
    found = {{
        "before": before, "plain": plain.reason if isinstance(plain, NoCgroups) else None,
        "kind": chosen.choice.kind, "reasons": chosen.reasons, "user": os.getuid(),
    }}
    with open_groups(chosen.choice) as groups:
        if groups is not None:
            states = {{name: [one.holding, one.reason] for name, one in groups.states.items()}}
            found |= {{"version": groups.tree.version, "states": states, "during": own_group()}}
            if measure:
                found |= measured(groups, chosen.choice)
    return {{**found, "after": own_group()}}

def measured(groups, choice):
    user = resolve_user()
    with open_run(user) as run:
        sandbox = open_sandbox(choice, user, run.trial_folder("1"), groups)
        port = sandbox.free_port()
        address = Address("127.0.0.1", port)
        launch = Launch((sys.executable, "-S", "s.py", str(port)), address, files={{"s.py": SERVER}})
        with sandbox.start(launch, Placement((0,), (1,), False)) as subject:
            subject.wait_until_ready()
            group = Path(f"/proc/{{subject.pids['server']}}/cgroup").read_text().strip().partition("::")[2]
            place = Path("/sys/fs/cgroup" + group)
            limits = {{name: (place / name).read_text().strip() for name in LIMITS}}
            workload = Workload(ClosedLoop(1), DurationStop(500_000_000))
            recording = open_engine(EngineChoice()).run(workload, address, subject.seat, lambda _event: None)
            return {{
                "group": group, "limits": limits, "network": sandbox.facts.network,
                "cpu_ns": subject.counters()["server"].cpu_ns,
                "ok": recording.account.ok,
            }}

def in_a_user_namespace():
    before = os.readlink("/proc/self/ns/user")
    gain_namespaces()
    return {{**opened(measure=True), "namespace": os.readlink("/proc/self/ns/user") != before}}

def as_user(name, *more):
    return ["-p", f"User={{name}}", *more]

SESSION = ["-p", "PAMName=guest"]
CASES = {{
    "session": (opened, as_user("user", *SESSION)),
    "namespace": (in_a_user_namespace, as_user("user", *SESSION)),
    "trusted": (opened, as_user("trusted", *SESSION)),
    "root": (opened, as_user("root", *SESSION)),
    "stranger": (opened, as_user("other")),
}}

def scopes():
    return [str(path) for path in Path("/sys/fs/cgroup").rglob("prony-*")]

def run(name):
    started = time.monotonic()
    started_by = ["systemd-run", "--quiet", "--pipe", "--wait", *CASES[name][1]]
    done = subprocess.run([*started_by, sys.executable, "-S", __file__, name], capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = {{"error": done.stdout + done.stderr}}
    deadline = time.monotonic() + 10
    while scopes() and time.monotonic() < deadline:
        time.sleep(0.1)
    found |= {{"left": scopes(), "seconds": time.monotonic() - started}}
    print("RESULT", json.dumps([name, found]), flush=True)

if len(sys.argv) > 1:
    print(json.dumps(CASES[sys.argv[1]][0]()))
else:
    Path("/home/user").mkdir(parents=True)
    os.chown("/home/user", 1000, 1000)
    for name in CASES:
        run(name)
"""


def pam_modules() -> Iterator[Path]:
    for name in ("pam_systemd.so", "pam_permit.so"):
        yield from sorted(Path("/usr/lib").glob(f"**/security/{name}"))[:1]


def missing_systemd() -> str | None:
    needed = [path for path in PROGRAMS if path.name != "systemd-executor"]
    lacking = [str(path) for path in needed if not path.exists()]
    if lacking:
        return f"needs {lacking[0]} (Debian: systemd, dbus)"
    if len(list(pam_modules())) < 2:
        return "needs pam_systemd.so (Debian: libpam-systemd)"
    if not (SYSTEMD / "user" / "dbus.socket").exists():
        return "needs a bus for each user (Debian: dbus-user-session)"
    return None


def build_root(folder: Path) -> Path:
    script = folder / "guest.py"
    script.write_text(GUEST.format(source=str(SOURCE)))
    archive = Archive()
    archive.add_link(Path("/init"), "/usr/lib/systemd/systemd")
    for name, text in FILES.items():
        archive.add_text(name, text.replace("{python}", python()))
    for kind, units in UNITS.items():
        for unit in (SYSTEMD / kind / name for name in units):
            if unit.exists():
                archive.add_text(str(unit), unit.read_text())
    archive.add_link(SYSTEMD / "user/sockets.target.wants/dbus.socket", "../dbus.socket")
    for bus in ("system.conf", "session.conf"):
        archive.add_file(Path("/usr/share/dbus-1", bus))
    for policy in Path("/usr/share/dbus-1/system.d").glob("org.freedesktop.*.conf"):
        archive.add_file(policy)
    archive.add_programs([path for path in (*PROGRAMS, *pam_modules()) if path.exists()])
    archive.add_file(Path(shutil.which("true") or "/bin/true"), Path("/bin/sh"))
    for empty in ("proc", "sys", "dev", "run", "tmp", "var/lib"):
        archive.add_text(f"/{empty}/.keep", "")
    archive.add_python(script, Path("/guest.py"))
    image = folder / "root.cpio"
    image.write_bytes(archive.bytes())
    return image


GUEST_WITH_SYSTEMD = Guest(
    build_root,
    lambda: missing_parts() or missing_systemd(),
    memory_mb=768,
    timeout_s=BOOT_TIMEOUT_S,
    expected=5,
    options="systemd.unit=guest.target systemd.unified_cgroup_hierarchy=1 systemd.show_status=0",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return GUEST_WITH_SYSTEMD.found(tmp_path_factory.mktemp("guest"))


WITH_A_SCOPE = ("session", "namespace", "trusted", "root")
OF_THE_USER = ("session", "namespace")


@pytest.mark.parametrize("case", WITH_A_SCOPE)
def test_in_the_group_of_a_session_prony_has_none_of_its_own(
    results: dict[str, dict[str, Any]], case: str
) -> None:
    found = results[case]
    assert "error" not in found, found["error"]
    user = found["user"]
    assert re.fullmatch(rf"/user\.slice/user-{user}\.slice/session-c\d+\.scope", found["before"])
    assert found["plain"]


@pytest.mark.parametrize("case", WITH_A_SCOPE)
def test_systemd_gives_it_a_scope_with_control_groups(results: dict[str, dict[str, Any]], case: str) -> None:
    found, user = results[case], results[case]["user"]
    manager = {0: "/system.slice/"}.get(user, f"/user.slice/user-{user}.slice/user@{user}.service/app.slice/")
    assert re.fullmatch(rf"{manager}prony-[0-9a-f-]+\.scope/prony-[0-9a-f-]+/prony", found["during"])
    assert found["after"] == str(Path(found["during"]).parent.parent)
    assert (found["version"], found["kind"], found["reasons"]) == ("v2", "cgroup", [])


@pytest.mark.parametrize("case", WITH_A_SCOPE)
def test_limits_hold_in_the_scope_by_their_effect(results: dict[str, dict[str, Any]], case: str) -> None:
    states = {name: holding for name, (holding, _) in results[case]["states"].items()}
    assert (states["cpu_quota"], states["memory"], states["pids"]) == ("enforced", "enforced", "enforced")


@pytest.mark.parametrize("case", OF_THE_USER)
def test_what_systemd_does_not_delegate_to_users_is_told(
    results: dict[str, dict[str, Any]], case: str
) -> None:
    assert results[case]["states"]["cpus"] == [
        "by affinity only",
        "the group that Prony was started in has no controller `cpuset`",
    ]


@pytest.mark.parametrize("case", ["trusted", "root"])
def test_cpus_are_held_too_where_systemd_delegates_them(
    results: dict[str, dict[str, Any]], case: str
) -> None:
    assert results[case]["states"]["cpus"][0] == "enforced"


def test_a_server_of_an_ordinary_user_runs_in_the_scope_within_its_limits(
    results: dict[str, dict[str, Any]],
) -> None:
    found = results["namespace"]
    assert found["namespace"]
    assert found["network"] == "isolated"
    assert found["group"] == f"{Path(found['during']).parent}/part-server"
    assert found["limits"] == {"cpu.max": "75000 100000", "memory.max": str(2**26), "pids.max": "50"}
    assert found["cpu_ns"] > 0
    assert found["ok"] > 0


def test_a_user_without_a_systemd_of_his_own_is_told_so(results: dict[str, dict[str, Any]]) -> None:
    found = results["stranger"]
    assert (found["kind"], found["before"]) == ("process", found["after"])
    assert found["reasons"] == [
        f"no control groups here: this user may not create groups in `/sys/fs/cgroup{found['before']}`; "
        "a scope of systemd is not available either: Failed to connect to bus: No such file or directory"
    ]


@pytest.mark.parametrize("case", [*WITH_A_SCOPE, "stranger"])
def test_no_scope_is_left(results: dict[str, dict[str, Any]], case: str) -> None:
    assert results[case]["left"] == []

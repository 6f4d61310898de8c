"""The back end for cgroup v2 on a real kernel with all controllers: in a small guest, without KVM.

Needs `qemu-system-x86_64`, a static `busybox` and a kernel: that of PRONY_TEST_KERNEL, else the newest in
/boot. The guest has no disk: its root is a memory file system with this interpreter and the modules that are
used. It boots in some 5 s; the cases take half a minute under emulation.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import prony

SOURCE = Path(prony.__file__).parent.parent
BOOT_TIMEOUT_S = 120
LOADER = "/lib64/ld-linux-x86-64.so.2"

INIT = """#!/bin/busybox sh
for folder in proc sys dev tmp; do /bin/busybox mkdir -p /$folder; done
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
PYTHONUTF8=1 {python} -S /guest.py > /dev/ttyS0 2>&1
/bin/busybox poweroff -f
"""

# Each case runs in a process of its own, in a group and as a user of its own, and says what it found.
GUEST = """
import sys
sys.path.insert(0, {source!r})
import dataclasses, json, os, signal, subprocess, time, traceback
from pathlib import Path
from prony.sandbox.cgroup.base import Limits, NoCgroups
from prony.sandbox.cgroup.join import join
from prony.sandbox.cgroup.probe import probe_limits
from prony.sandbox.cgroup.remains import clear_remains
from prony.sandbox.cgroup.tree import open_cgroups
TOP = Path("/sys/fs/cgroup")
CONTROLLERS = "+cpu +cpuset +memory +pids"

def own_group():
    return Path("/proc/self/cgroup").read_text().strip().partition("::")[2]

def subtrees():
    return sorted(str(path) for path in TOP.rglob("prony-*"))

def facts_after(group):
    on = (group / "cgroup.subtree_control").read_text().split()
    return {{"left": subtrees(), "group": own_group(), "on": on}}

def probed():
    group = TOP / own_group().lstrip("/")
    tree = open_cgroups()
    if isinstance(tree, NoCgroups):
        return {{"reason": tree.reason, "hint": tree.hint, **facts_after(group)}}
    during = own_group()
    states = probe_limits(tree)
    with tree.create("server") as part:
        refused = part.set_limits(Limits(cpus=(0,), cpu_quota=0.5, memory_bytes=2**25, pids=20))
        child = os.fork()
        if child == 0:
            join(part.join_paths)
            os.setsid()
            os.fork()
            time.sleep(600)
        while len(part.members()) < 2:
            time.sleep(0.01)
        hog = os.fork()
        if hog == 0:
            join(part.join_paths)
            b"x" * 2**27
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(hog, 0)[1])
        counters = dataclasses.asdict(part.counters())
        killed = part.kill()
        members = part.members()
    closed = tree.close()
    return {{
        "version": tree.version, "during": during, "refused": refused, "hog": status, "counters": counters,
        "states": {{name: [state.holding, state.reason] for name, state in states.items()}},
        "killed": killed, "members": members, "closed": closed, **facts_after(group),
    }}

def killed():
    here, there = os.pipe()
    owner = os.fork()
    if owner == 0:
        os.close(here)
        (TOP / "killed" / "cgroup.procs").write_text("0")
        part = open_cgroups().create("server")
        if os.fork() == 0:
            os.setsid()
            join(part.join_paths)
            os.write(there, b"x")
            time.sleep(600)
        time.sleep(600)
    os.close(there)
    os.read(here, 1)
    alive = [dataclasses.asdict(one) for one in clear_remains()]
    before = subtrees()
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    cleared = [dataclasses.asdict(one) for one in clear_remains()]
    return {{"alive": alive, "before": before, "cleared": cleared, "left": subtrees()}}

def run(name, case, group, user=0):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        (group / "cgroup.procs").write_text("0")
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        started = time.monotonic()
        found = {{**case(), "seconds": time.monotonic() - started}}
    except BaseException:
        found = {{"error": traceback.format_exc()}}
    print("RESULT", json.dumps([name, found]), flush=True)
    os._exit(0)

def make(name, user=0):
    group = TOP / name
    group.mkdir()
    for path in (group, group / "cgroup.procs", group / "cgroup.subtree_control", group / "cgroup.threads"):
        os.chown(path, user, user)
    return group

run("root", probed, TOP)
(TOP / "cgroup.subtree_control").write_text(CONTROLLERS)
run("alone", probed, make("alone"))
shared = make("shared")
with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"]) as other:
    (shared / "cgroup.procs").write_text(str(other.pid))
    run("shared", probed, shared)
    other.kill()
delegated = make("slice", 1000)
(delegated / "cgroup.subtree_control").write_text(CONTROLLERS)
run("delegated", probed, make("slice/scope", 1000), 1000)
run("stranger", probed, make("foreign"), 1000)
make("killed")
run("killed", killed, TOP)
"""


def missing_parts() -> str | None:
    """Return why no guest can be started here."""
    if shutil.which("qemu-system-x86_64") is None or os.uname().machine != "x86_64":
        return "needs qemu-system-x86_64 (Debian: qemu-system-x86) on x86-64"
    if shutil.which("busybox") is None:
        return "needs a static busybox (Debian: busybox-static)"
    if kernel() is None:
        return "needs a kernel: set PRONY_TEST_KERNEL to a vmlinuz"
    return None


def kernel() -> Path | None:
    """Return the kernel to boot."""
    named = os.environ.get("PRONY_TEST_KERNEL")
    found = [Path(named)] if named else sorted(Path("/boot").glob("vmlinuz-*"))
    return found[-1] if found and os.access(found[-1], os.R_OK) else None


def needed_files(guest: Path) -> Iterator[Path]:
    """Yield the files that this interpreter has open or loaded once it has imported what the guest does."""
    imports = [
        line for line in guest.read_text().splitlines() if line.startswith(("import ", "from ", "sys.path"))
    ]
    script = "\n".join(
        [
            *("import sys", *imports),
            "print(*(line.split()[-1] for line in open('/proc/self/maps')), sep='\\n')",
            "modules = list(sys.modules.values())",
            "for kind in ('__file__', '__cached__'):",
            "    print(*(getattr(module, kind, None) for module in modules), sep='\\n')",
        ]
    )
    command = [python(), "-S", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONUTF8": "1"})
    for path in map(Path, dict.fromkeys(done.stdout.splitlines())):
        if path.is_absolute() and path.is_file():
            yield path


def python() -> str:
    return os.path.realpath(sys.executable)


class Archive:
    """A cpio archive in the `newc` format, as a kernel unpacks it into its first root."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._folders: set[Path] = set()

    def add(self, place: Path, content: bytes, mode: int = 0o100755, mtime: int = 0) -> None:
        for folder in reversed(place.parents[:-1]):
            if folder not in self._folders:
                self._folders.add(folder)
                self._entry(str(folder)[1:], b"", 0o040755, 0)
        self._entry(str(place)[1:], content, mode, mtime)

    def add_file(self, path: Path, place: Path | None = None) -> None:
        # With its time: a compiled module counts only while its source has the time that it knows.
        self.add(place or path, path.read_bytes(), mtime=int(path.stat().st_mtime))

    def bytes(self) -> bytes:
        self._entry("TRAILER!!!", b"", 0, 0)
        return b"".join(self._parts)

    def _entry(self, name: str, content: bytes, mode: int, mtime: int) -> None:
        fields = (len(self._parts) + 1, mode, 0, 0, 1, mtime, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        self._parts.append(_padded(head) + _padded(content))


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def build_root(folder: Path) -> Path:
    guest = folder / "guest.py"
    guest.write_text(GUEST.format(source=str(SOURCE)))
    archive = Archive()
    archive.add(Path("/init"), INIT.format(python=python()).encode())
    archive.add_file(guest, Path("/guest.py"))
    archive.add_file(Path(shutil.which("busybox") or ""), Path("/bin/busybox"))
    archive.add_file(Path(python()))
    archive.add_file(Path(LOADER))
    for path in needed_files(guest):
        archive.add_file(path)
        if ".so" in path.name:
            # A library is sought by the name in its users, which is a link to it.
            for link in path.parent.glob(path.name.partition(".so")[0] + ".so*"):
                if link.is_symlink() and link.resolve() == path:
                    archive.add_file(path, link)
    image = folder / "root.cpio"
    image.write_bytes(archive.bytes())
    return image


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    reason = missing_parts()
    if reason is not None:
        pytest.skip(reason)
    image = build_root(tmp_path_factory.mktemp("guest"))
    done = subprocess.run(
        [
            *("nice", "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "512"),
            *("-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot", "-nic", "none"),
            *("-kernel", str(kernel()), "-initrd", str(image)),
            *("-append", "console=ttyS0 quiet panic=-1 psi=1"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=BOOT_TIMEOUT_S,
    )
    lines = [line.partition("RESULT ")[2] for line in done.stdout.splitlines() if "RESULT " in line]
    found = dict(json.loads(line) for line in lines)
    assert len(found) == 6, done.stdout[-5000:] + done.stderr[-2000:]
    return found


WITH_GROUPS = ("root", "alone", "delegated")


@pytest.mark.parametrize("case", WITH_GROUPS)
def test_every_limit_holds_on_v2(results: dict[str, dict[str, Any]], case: str) -> None:
    assert results[case]["version"] == "v2"
    assert results[case]["refused"] == {}
    assert {name: holding for name, (holding, _) in results[case]["states"].items()} == {
        "cpus": "enforced",
        "cpu_quota": "enforced",
        "memory": "enforced",
        "pids": "enforced",
    }


@pytest.mark.parametrize("case", WITH_GROUPS)
def test_the_kernel_counts_what_happened_on_v2(results: dict[str, dict[str, Any]], case: str) -> None:
    counters = results[case]["counters"]
    assert results[case]["hog"] == -9
    assert counters["oom_kills"] == 1
    assert counters["memory_limit_hits"] > 0
    assert counters["cpu_ns"] > 0
    # `memory.peak` came with Linux 5.19, `pids.peak` with 6.1: what is missing has its reason.
    unknown = {name for name, value in counters.items() if value is None}
    assert unknown == set(counters["missing"])
    assert unknown <= {"memory_peak_bytes", "pids_peak"}


@pytest.mark.parametrize("case", WITH_GROUPS)
def test_what_is_in_a_group_is_killed_on_v2(results: dict[str, dict[str, Any]], case: str) -> None:
    assert (results[case]["killed"], results[case]["members"]) == (2, [])


@pytest.mark.parametrize("case", [*WITH_GROUPS, "shared", "stranger"])
def test_nothing_is_left_and_prony_is_back_where_it_was_on_v2(
    results: dict[str, dict[str, Any]], case: str
) -> None:
    group = {"root": "/", "delegated": "/slice/scope", "stranger": "/foreign"}.get(case, f"/{case}")
    found = results[case]
    assert found.get("closed") is None
    assert (found["left"], found["group"], found["on"]) == ([], group, [])


def test_prony_stays_in_the_root_group(results: dict[str, dict[str, Any]]) -> None:
    assert results["root"]["during"] == "/"


@pytest.mark.parametrize("case", ["alone", "delegated"])
def test_prony_moves_into_a_leaf_of_its_subtree(results: dict[str, dict[str, Any]], case: str) -> None:
    assert "/prony-" in results[case]["during"]
    assert results[case]["during"].endswith("/prony")


def test_a_group_with_other_processes_is_named_as_the_reason(results: dict[str, dict[str, Any]]) -> None:
    assert results["shared"]["reason"] == (
        "other processes are in the group that Prony was started in, `/sys/fs/cgroup/shared`"
    )
    assert "systemd-run" in results["shared"]["hint"]


def test_a_group_of_another_user_is_named_as_the_reason(results: dict[str, dict[str, Any]]) -> None:
    assert results["stranger"]["reason"] == "this user may not make groups in `/sys/fs/cgroup/foreign`"


def test_what_a_killed_prony_left_is_cleared_on_v2(results: dict[str, dict[str, Any]]) -> None:
    found = results["killed"]
    assert (found["alive"], len(found["before"]), found["left"]) == ([], 1, [])
    # The subject; Prony itself was the other one in its leaf, and is gone.
    assert [(one["processes_killed"], one["kept"]) for one in found["cleared"]] == [(1, None)]

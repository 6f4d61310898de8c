"""The back end for cgroup v2 on a real kernel with all controllers: in a small guest, without KVM.

Needs what `guest` says and a static `busybox`. It boots in some 5 s; the cases take half a minute under
emulation.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.guest import SOURCE, Archive, Guest, missing_parts, python

pytestmark = pytest.mark.slow

BOOT_TIMEOUT_S = 120

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
from prony.sandbox.cgroup.types import Limits, NoCgroups
from prony.sandbox.linux import join
from prony.sandbox.cgroup.probe import probe_limits
from prony.sandbox.remains import clear_subtrees
from prony.sandbox.cgroup.scope import open_cgroups
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
    alive = [dataclasses.asdict(one) for one in clear_subtrees()]
    before = subtrees()
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    cleared = [dataclasses.asdict(one) for one in clear_subtrees()]
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


def build_root(folder: Path) -> Path:
    script = folder / "guest.py"
    script.write_text(GUEST.format(source=str(SOURCE)))
    archive = Archive()
    archive.add_text("/init", INIT.format(python=python()), 0o100755)
    archive.add_file(Path(shutil.which("busybox") or ""), Path("/bin/busybox"))
    archive.add_python(script, Path("/guest.py"))
    image = folder / "root.cpio"
    image.write_bytes(archive.bytes())
    return image


def missing() -> str | None:
    if shutil.which("busybox") is None:
        return missing_parts() or "needs a static busybox (Debian: busybox-static)"
    return missing_parts()


GUEST_WITH_GROUPS = Guest(build_root, missing, memory_mb=512, timeout_s=BOOT_TIMEOUT_S, expected=6)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return GUEST_WITH_GROUPS.found(tmp_path_factory.mktemp("guest"))


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
    assert "no other process" in results["shared"]["hint"]


def test_a_group_of_another_user_is_named_as_the_reason(results: dict[str, dict[str, Any]]) -> None:
    assert results["stranger"]["reason"] == "this user may not create groups in `/sys/fs/cgroup/foreign`"


def test_what_a_killed_prony_left_is_cleared_on_v2(results: dict[str, dict[str, Any]]) -> None:
    found = results["killed"]
    assert (found["alive"], len(found["before"]), found["left"]) == ([], 1, [])
    # The subject; Prony itself was the other one in its leaf, and is gone.
    assert [(one["processes_killed"], one["kept"]) for one in found["cleared"]] == [(1, None)]

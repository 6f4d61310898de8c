"""Real groups, where this machine lets them be made: the limits hold, the kernel counts, nothing is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import prony
from prony.core.errors import HostError
from prony.sandbox.cgroup.files import KernelFiles, find_hierarchies, parse_mark
from prony.sandbox.cgroup.probe import probe_limits, states_without
from prony.sandbox.cgroup.scope import CgroupTree, OwnGroup, open_cgroups
from prony.sandbox.cgroup.types import LIMITS, Limits, NoCgroups
from prony.sandbox.remains import Cleared, clear_subtrees

from .subjects import eventually

SOURCE = str(Path(prony.__file__).parent.parent)
JOIN = "import sys; from prony.sandbox.linux import join; join(sys.argv[1].split(':'));"


@pytest.fixture
def tree() -> Iterator[CgroupTree]:
    opened = open_cgroups()
    if isinstance(opened, NoCgroups):
        pytest.skip(f"no cgroups here: {opened.reason}")
    with opened:
        yield opened
    assert left_by(os.getpid()) == []


@pytest.fixture
def group(tree: CgroupTree) -> OwnGroup:
    return tree.create("server")


def left_by(pid: int) -> list[Path]:
    """Return the subtrees of one Prony that stand, in all that is mounted."""
    hierarchies = find_hierarchies(
        Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
    )
    found = (path for one in hierarchies for path in one.mount.rglob("prony-*"))
    return [path for path in found if (mark := parse_mark(path.name)) and mark.owner.pid == pid]


def limited(tree: CgroupTree, limits: Limits) -> OwnGroup:
    group = tree.create("limited")
    refused = group.set_limits(limits)
    if refused:
        pytest.skip(f"cannot be limited here: {refused}")
    return group


def run_in(group: OwnGroup, script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", JOIN + script, ":".join(group.join_paths)],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


@contextmanager
def started_in(group: OwnGroup, script: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a process in a group, past its entering; at the end it must have been killed."""
    child = subprocess.Popen(
        [sys.executable, "-c", JOIN + "print('in', flush=True);" + script, ":".join(group.join_paths)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    with child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "in\n"
            yield child
            assert child.wait(5) == -signal.SIGKILL
        finally:
            child.kill()


BOMB = """
import os, time
for _ in range(8):
    try:
        os.fork()
    except OSError:
        pass
time.sleep(600)
"""
SLEEP = "import time; time.sleep(600)"


def test_a_memory_hog_in_64_mb_is_killed_and_counted(tree: CgroupTree) -> None:
    group = limited(tree, Limits(memory_bytes=64 * 1024**2))
    assert run_in(group, "print(len(b'x' * (256 * 1024**2)))").returncode == -signal.SIGKILL
    counters = group.counters()
    assert counters.oom_kills == 1
    assert counters.memory_limit_hits
    # On a kernel without `memory.peak` (before 5.19, on v2) there is none, and the reason is said.
    assert counters.memory_peak_bytes is None or 32 * 1024**2 < counters.memory_peak_bytes <= 64 * 1024**2


def test_what_fits_in_64_mb_is_not_killed(tree: CgroupTree) -> None:
    group = limited(tree, Limits(memory_bytes=64 * 1024**2))
    assert run_in(group, "print(len(b'x' * (8 * 1024**2)))").returncode == 0
    assert group.counters().oom_kills == 0


def test_a_quota_of_a_twentieth_of_a_cpu_shows_throttling(tree: CgroupTree) -> None:
    # Less than other work on the machine leaves.
    group = limited(tree, Limits(cpu_quota=0.05))
    before = group.counters()
    done = run_in(
        group,
        "import time; end = time.monotonic() + 1; b = time.process_time()\n"
        "while time.monotonic() < end: pass\n"
        "print(time.process_time() - b)",
    )
    counted = group.counters() - before
    assert float(done.stdout) < 0.2
    assert counted.throttled_periods
    assert counted.throttled_ns
    assert counted.cpu_ns is not None
    assert counted.cpu_ns > 10_000_000


def test_a_pids_limit_holds_a_fork_bomb(tree: CgroupTree) -> None:
    group = limited(tree, Limits(pids=20))
    # Bounded twice: by the limit and by its own count.
    with started_in(group, BOMB):
        assert eventually(lambda: len(group.members()) == 20)
        assert eventually(lambda: bool(group.counters().pids_limit_hits))
        assert group.kill() == 20
    assert group.members() == ()


class OlderKernel(KernelFiles):
    """A kernel that lacks some of the files by which groups are ended."""

    def __init__(self, *without: str) -> None:
        self._without = without

    def write(self, path: Path, text: str) -> None:
        if path.name in self._without:
            raise FileNotFoundError(2, "No such file or directory")
        super().write(path, text)


@pytest.mark.parametrize(
    "without", [("cgroup.kill",), ("cgroup.kill", "freezer.state"), ("cgroup.kill", "cgroup.freeze")]
)
def test_a_bomb_that_forks_on_is_ended_on_an_older_kernel(without: tuple[str, ...]) -> None:
    opened = open_cgroups(files=OlderKernel(*without))
    if isinstance(opened, NoCgroups):
        pytest.skip(f"no cgroups here: {opened.reason}")
    with opened:
        group = limited(opened, Limits(pids=8, cpu_quota=0.5))
        with started_in(group, BOMB.replace("range(8)", "range(10**9)")):
            assert eventually(lambda: bool(group.counters().pids_limit_hits))
            assert group.remove() is None
    assert left_by(os.getpid()) == []


def test_v1_alone_ends_limits_and_counts(tmp_path: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text().splitlines(keepends=True)
    (tmp_path / "mountinfo").write_text("".join(line for line in mounts if " - cgroup2 " not in line))
    (tmp_path / "cgroup").write_text(Path("/proc/self/cgroup").read_text())
    opened = open_cgroups(tmp_path)
    if isinstance(opened, NoCgroups):
        pytest.skip(f"no groups of v1 here: {opened.reason}")
    with opened:
        assert opened.version == "v1"
        group = limited(opened, Limits(pids=20))
        with started_in(group, BOMB):
            assert eventually(lambda: len(group.members()) == 20)
            counters = group.counters()
            assert group.kill() == 20
        assert counters.cpu_ns
        assert counters.missing["cpu_stalled_ns"] == "cgroup v1 has no pressure figures"
    assert left_by(os.getpid()) == []


def test_a_cpu_set_narrows_what_a_process_may_use(tree: CgroupTree) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    group = limited(tree, Limits(cpus=(cpus[-1],)))
    done = run_in(group, "import os; print(os.sched_getaffinity(0))")
    assert done.stdout == f"{{{cpus[-1]}}}\n"
    widened = run_in(group, f"import os; os.sched_setaffinity(0, {cpus}); print(os.sched_getaffinity(0))")
    assert widened.stdout == f"{{{cpus[-1]}}}\n"


def test_limits_can_be_raised_and_lowered(tree: CgroupTree) -> None:
    group = limited(tree, Limits(memory_bytes=64 * 1024**2, cpu_quota=0.5, pids=10))
    for factor in (2, 1, 4):
        changed = Limits(memory_bytes=factor * 32 * 1024**2, cpu_quota=0.4 * factor, pids=5 * factor)
        assert group.set_limits(changed) == {}


def test_cpus_that_are_not_there_are_refused_with_the_reason(group: OwnGroup) -> None:
    refused = group.set_limits(Limits(cpus=(100_000,)))
    assert list(refused) == ["cpus"]
    assert refused["cpus"]


def test_each_group_has_its_own_bill(tree: CgroupTree) -> None:
    server, frontend = tree.create("server"), tree.create("frontend")
    run_in(server, "sum(range(10**6))")
    assert server.counters().cpu_ns
    assert frontend.counters().cpu_ns == 0


def test_every_counter_has_a_value_or_a_reason(group: OwnGroup) -> None:
    counters = group.counters()
    unknown = {name for name in counters.names() if getattr(counters, name) is None}
    assert unknown == set(counters.missing)


def test_members_are_the_processes_that_have_joined(group: OwnGroup) -> None:
    with started_in(group, SLEEP) as child:
        assert group.members() == (child.pid,)
        assert group.kill() == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a PID namespace")
def test_a_process_of_another_pid_namespace_joins_and_is_ended(group: OwnGroup) -> None:
    script = (
        "import os, sys, time; from prony.sandbox import linux; from prony.sandbox.linux import join\n"
        "linux.unshare(linux.NEW_PIDS); pid = os.fork()\n"
        "if pid == 0:\n"
        "    join(sys.argv[1].split(':')); os.write(1, b'%d\\n' % os.getpid()); time.sleep(600)\n"
        "os.write(1, b'%d\\n' % pid); os.waitpid(pid, 0)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, ":".join(group.join_paths)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    ) as outside:
        try:
            assert outside.stdout is not None
            # Here it has another number than it sees itself.
            seen = {int(outside.stdout.readline()) for _ in range(2)}
            assert seen == {1, *group.members()}
            assert group.kill() == 1
            assert outside.wait(5) == 0
        finally:
            group.kill()
            outside.kill()


def test_removing_a_group_ends_what_is_in_it(tree: CgroupTree) -> None:
    deaf = "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork();"
    group = tree.create("server")
    with started_in(group, deaf + SLEEP):
        assert eventually(lambda: len(group.members()) == 2)
        assert group.remove() is None
    assert [path for place in tree.places for path in place.glob("part-*")] == []


def test_a_group_exists_once(tree: CgroupTree, group: OwnGroup) -> None:
    with started_in(group, SLEEP) as child:
        with pytest.raises(HostError, match="server"):
            tree.create(group.name)
        assert group.members() == (child.pid,)
        group.kill()


@pytest.mark.parametrize("name", ["..", "", "a/b", "-a", "x" * 101, "a\n"])
def test_a_name_that_leads_elsewhere_is_refused(tree: CgroupTree, name: str) -> None:
    with pytest.raises(ValueError, match="name of a group"):
        tree.create(name)


def test_a_process_has_one_subtree(tree: CgroupTree) -> None:
    second = open_cgroups()
    assert isinstance(second, NoCgroups)
    assert "already" in second.reason
    assert tree.create("server").members() == ()


def test_nothing_is_left_after_success(tree: CgroupTree, group: OwnGroup) -> None:
    with started_in(group, SLEEP):
        assert left_by(os.getpid()) != []
        assert tree.close() is None
    assert left_by(os.getpid()) == []


def test_nothing_is_left_after_an_exception() -> None:
    opened = open_cgroups()
    if isinstance(opened, NoCgroups):
        pytest.skip(f"no cgroups here: {opened.reason}")

    def fail() -> None:
        with opened, opened.create("server") as group:
            stack.enter_context(started_in(group, SLEEP))
            raise KeyError("planted")

    with ExitStack() as stack:
        with pytest.raises(KeyError, match="planted"):
            fail()
        assert left_by(os.getpid()) == []


OWNER = """
import os, sys, time
from prony.sandbox.cgroup.types import Limits
from prony.sandbox.linux import join
from prony.sandbox.cgroup.scope import CgroupTree, open_cgroups
group = open_cgroups().create("server")
group.set_limits(Limits(pids=50))
if os.fork() == 0:
    os.setsid()
    join(group.join_paths)
    os.fork()
    time.sleep(600)
while len(group.members()) < 2:
    time.sleep(0.01)
print(*group.members(), flush=True)
time.sleep(600)
"""


@contextmanager
def other_prony() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    ) as owner:
        try:
            yield owner
        finally:
            owner.kill()
            owner.wait(5)
            clear_subtrees()


def pids_of(owner: "subprocess.Popen[str]") -> list[int]:
    assert owner.stdout is not None
    return [int(pid) for pid in owner.stdout.readline().split()]


def test_what_a_killed_prony_left_is_ended_and_removed(tree: CgroupTree) -> None:
    with other_prony() as owner:
        pids = pids_of(owner)
        assert len(pids) == 2
        owner.kill()
        owner.wait(5)
        name = left_by(owner.pid)[0].name
        assert Cleared(name, processes_killed=2) in clear_subtrees()
        assert left_by(owner.pid) == []
        assert eventually(lambda: not any(is_running(pid) for pid in pids))


def test_living_pronys_are_left_alone(tree: CgroupTree, group: OwnGroup) -> None:
    with other_prony() as owner, started_in(group, SLEEP) as mine:
        pids = pids_of(owner)
        places = left_by(owner.pid)
        clear_subtrees()
        assert left_by(owner.pid) == places
        assert all(is_running(pid) for pid in pids)
        assert group.members() == (mine.pid,)
        group.kill()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_probes_tell_of_each_limit_what_was_seen(tree: CgroupTree) -> None:
    states = probe_limits(tree)
    assert tuple(states) == LIMITS
    assert all(state.reason for state in states.values())
    for limit in tree.missing:
        assert states[limit].holding != "enforced"
    assert [path for place in tree.places for path in place.glob("part-*")] == []


def test_as_root_with_v1_every_limit_holds(tree: CgroupTree) -> None:
    if os.geteuid() != 0 or tree.missing or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs root, two CPUs and all four controllers")
    assert {limit: state.holding for limit, state in probe_limits(tree).items()} == dict.fromkeys(
        LIMITS, "enforced"
    )


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Others, six for each CPU, that want all of it, in sessions: among those the kernel shares a CPU."""
    with ExitStack() as others:
        for _ in range(6 * len(os.sched_getaffinity(0))):
            spinning = subprocess.Popen(
                [sys.executable, "-S", "-c", "while True: pass"], start_new_session=True
            )
            others.callback(spinning.wait)
            others.callback(spinning.kill)
        yield


def test_a_quota_is_seen_to_hold_on_a_busy_machine(busy_machine: None, tree: CgroupTree) -> None:
    if "cpu_quota" in tree.missing:
        pytest.skip("needs the controller of CPU time")
    state = probe_limits(tree, ["cpu_quota"])["cpu_quota"]
    assert state.holding == "enforced", state.reason


def test_without_groups_only_cpus_are_held_by_affinity() -> None:
    states = states_without("none here")
    assert {limit: state.holding for limit, state in states.items()} == {
        "cpus": "by affinity only",
        "cpu_quota": "absent",
        "memory": "absent",
        "pids": "absent",
    }
    assert {state.reason for state in states.values()} == {"none here"}


def test_entering_needs_the_standard_library_only() -> None:
    script = (
        "import sys; import prony.sandbox.linux;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {SOURCE!r}); {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) <= {"prony", "__main__", "__mp_main__"}

"""Both back ends against a stand-in for the kernel: its files, its refusals, and what is never touched."""

import errno
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.core.errors import HostError
from prony.core.trees import remove_tree
from prony.sandbox.cgroup.ending import kill_all, members, remove_all
from prony.sandbox.cgroup.files import Mark, find_hierarchies, own_mark, parse_flat, parse_mark
from prony.sandbox.cgroup.scope import CgroupTree, open_cgroups
from prony.sandbox.cgroup.types import Counters, Limits, NoCgroups
from prony.sandbox.identity import Identity, boot_id
from prony.sandbox.remains import clear_subtrees

# What Linux 6.1 (v2) and 6.18 (v1) put into a group, as far as it is used.
OF_V2 = {
    "": {
        "cgroup.procs": "",
        "cgroup.type": "domain\n",
        "cgroup.kill": "",
        "cgroup.freeze": "0\n",
        "cgroup.subtree_control": "\n",
        "cpu.stat": "usage_usec 70\nuser_usec 50\nsystem_usec 20\n",
        "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=0.00 total=0\n",
        "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=13\n",
        "io.pressure": "some avg10=1.50 avg60=0.00 avg300=0.00 total=14\nfull avg10=0.00 total=15\n",
    },
    "cpu": {
        "cpu.max": "max 100000\n",
        "cpu.stat": "usage_usec 70\nuser_usec 50\nsystem_usec 20\n"
        "nr_periods 9\nnr_throttled 4\nthrottled_usec 300\nnr_bursts 0\nburst_usec 0\n",
    },
    "cpuset": {"cpuset.cpus": "\n", "cpuset.cpus.effective": "0-1\n"},
    "memory": {
        "memory.current": "4096\n",
        "memory.peak": "8192\n",
        "memory.max": "max\n",
        "memory.swap.max": "max\n",
        "memory.events": "low 0\nhigh 0\nmax 35\noom 1\noom_kill 2\noom_group_kill 0\n",
    },
    "pids": {"pids.max": "max\n", "pids.peak": "6\n", "pids.events": "max 3\n"},
}
OF_V1 = {
    "cpu": {
        "cpu.cfs_period_us": "100000\n",
        "cpu.cfs_quota_us": "-1\n",
        "cpu.stat": "nr_periods 9\nnr_throttled 4\nthrottled_time 300000\nnr_bursts 0\nburst_time 0\n",
    },
    "cpuacct": {"cpuacct.usage": "70000\n", "cpuacct.stat": "user 5\nsystem 2\n"},
    "cpuset": {"cpuset.cpus": "\n", "cpuset.mems": "\n", "cpuset.effective_cpus": "\n"},
    "memory": {
        "memory.limit_in_bytes": "9223372036854771712\n",
        "memory.memsw.limit_in_bytes": "9223372036854771712\n",
        "memory.swappiness": "60\n",
        "memory.usage_in_bytes": "4096\n",
        "memory.max_usage_in_bytes": "8192\n",
        "memory.failcnt": "35\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    },
    "pids": {"pids.max": "max\n", "pids.events": "max 3\n"},
    "freezer": {"freezer.state": "THAWED\n"},
}


class StandIn:
    """A kernel's cgroup file systems in a folder: see ``CgroupFiles``. ``touched``: all that was changed."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.touched: list[Path] = []
        self.foreign: set[Path] = set()
        self.read_only = False
        (top / "proc").mkdir()
        (top / "proc" / "mountinfo").touch()
        (top / "proc" / "cgroup").touch()

    @property
    def proc(self) -> Path:
        return self.top / "proc"

    def mount_v1(self, *controllers: str, group: str = "/") -> Path:
        name = ",".join(controllers)
        mount = self.top / name
        self._tell(f"1 1 0:1 / {mount} rw - cgroup cgroup rw,{name}", f"3:{name}:{group}")
        self._fill(mount, "v1", controllers)
        folder = self._start_in(mount, group)
        for path in (folder, *folder.parents):
            if (path / "cpuset.mems").exists():
                (path / "cpuset.cpus").write_text("0-1\n")
                (path / "cpuset.mems").write_text("0\n")
        return folder

    def mount_v2(self, *controllers: str, group: str = "/") -> Path:
        mount = self.top / "unified"
        self._tell(f"2 1 0:2 / {mount} rw - cgroup2 cgroup2 rw", f"0::{group}")
        self._fill(mount, "v2", ())
        (mount / "cgroup.type").unlink()
        (mount / "cgroup.controllers").write_text(" ".join(controllers) + "\n")
        return self._start_in(mount, group, " ".join(f"+{one}" for one in controllers))

    def _tell(self, mount: str, group: str) -> None:
        for name, line in (("mountinfo", mount), ("cgroup", group)):
            with (self.proc / name).open("a") as file:
                file.write(line + "\n")

    def _start_in(self, mount: Path, group: str, switches: str = "") -> Path:
        folder = mount
        for part in Path(group).parts[1:]:
            if switches:
                self._switch(folder, switches)
            folder /= part
            self.make(folder)
        self._put(folder, os.getpid())
        self.touched.clear()
        return folder

    def _fill(self, path: Path, version: str, controllers: tuple[str, ...]) -> None:
        path.mkdir(exist_ok=True)
        for name in (name for one in OF_V2 if one not in ("", *controllers) for name in OF_V2[one]):
            (path / name).unlink(missing_ok=True)
        (path / ".version").write_text(f"{version} {' '.join(controllers)}")
        files = {"cgroup.procs": ""} if version == "v1" else dict(OF_V2[""])
        for one in controllers:
            files |= (OF_V1 if version == "v1" else OF_V2).get(one, {})
        if version == "v2":
            files["cgroup.controllers"] = " ".join(controllers) + "\n"
        for name, text in files.items():
            (path / name).write_text(text)

    def _of(self, path: Path) -> tuple[str, tuple[str, ...]]:
        version, *controllers = (path / ".version").read_text().split()
        return version, tuple(controllers)

    def _put(self, folder: Path, pid: int) -> None:
        mount = next(one for one in (folder, *folder.parents) if one.parent == self.top)
        for file in mount.rglob("cgroup.procs"):
            pids = file.read_text().split()
            if str(pid) in pids:
                file.write_text("".join(f"{one}\n" for one in pids if one != str(pid)))
        with (folder / "cgroup.procs").open("a") as file:
            file.write(f"{pid}\n")

    def _switch(self, folder: Path, text: str) -> None:
        procs = (folder / "cgroup.procs").read_text().strip()
        on = set((folder / "cgroup.subtree_control").read_text().split())
        for word in text.split():
            if word[1:] not in (folder / "cgroup.controllers").read_text().split():
                raise OSError(errno.ENOENT, "No such file or directory")
            if word[0] == "+" and procs and (folder / "cgroup.type").exists():
                raise OSError(errno.EBUSY, "Device or resource busy")
            below = [one / "cgroup.subtree_control" for one in folder.iterdir() if one.is_dir()]
            if word[0] == "-" and any(word[1:] in file.read_text().split() for file in below):
                raise OSError(errno.EBUSY, "Device or resource busy")
            on = on | {word[1:]} if word[0] == "+" else on - {word[1:]}
        (folder / "cgroup.subtree_control").write_text(" ".join(sorted(on)) + "\n")
        for one in folder.iterdir():
            if one.is_dir():
                kept = (one / "cgroup.procs").read_text(), (one / "cgroup.subtree_control").read_text()
                self._fill(one, "v2", tuple(sorted(on)))
                (one / "cgroup.procs").write_text(kept[0])
                (one / "cgroup.subtree_control").write_text(kept[1])

    # --- CgroupFiles ---

    def read(self, path: Path) -> str:
        return path.read_text()

    def write(self, path: Path, text: str) -> None:
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        self.touched.append(path)
        match path.name:
            case "cgroup.procs":
                switches = path.with_name("cgroup.subtree_control")
                if path.with_name("cgroup.type").exists() and switches.read_text().split():
                    raise OSError(errno.EBUSY, "Device or resource busy")
                self._put(path.parent, int(text))
            case "cgroup.subtree_control":
                self._switch(path.parent, text)
            case "cgroup.kill":
                for file in path.parent.rglob("cgroup.procs"):
                    file.write_text("")
            case "cpuset.cpus":
                path.write_text(text + "\n")
                for effective in ("cpuset.effective_cpus", "cpuset.cpus.effective"):
                    if (path.parent / effective).exists():
                        (path.parent / effective).write_text(text + "\n")
            case _:
                path.write_text(text + "\n")

    def make(self, path: Path) -> None:
        if self.read_only:
            raise OSError(errno.EROFS, "Read-only file system")
        if path.parent in self.foreign:
            raise PermissionError(errno.EACCES, "Permission denied")
        if path.exists():
            raise FileExistsError(errno.EEXIST, "File exists")
        self.touched.append(path)
        version, controllers = self._of(path.parent)
        switches = path.parent / "cgroup.subtree_control"
        self._fill(path, version, controllers if version == "v1" else tuple(switches.read_text().split()))

    def remove(self, path: Path) -> None:
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        if self.folders(path) or (path / "cgroup.procs").read_text().split():
            raise OSError(errno.EBUSY, "Device or resource busy")
        self.touched.append(path)
        shutil.rmtree(path)

    def folders(self, path: Path) -> list[str]:
        return sorted(one.name for one in path.iterdir() if one.is_dir() and not one.is_symlink())

    def owner(self, path: Path) -> int:
        return os.geteuid() + 1 if path in self.foreign else os.geteuid()


ALL = ("cpu", "cpuset", "memory", "pids")
WANTED = Limits(cpus=(1,), cpu_quota=1.5, memory_bytes=64 * 1024**2, pids=20)


@pytest.fixture
def kernel(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def opened(kernel: StandIn) -> CgroupTree:
    tree = open_cgroups(kernel.proc, kernel)
    assert not isinstance(tree, NoCgroups), tree
    return tree


def refused(kernel: StandIn) -> NoCgroups:
    tree = open_cgroups(kernel.proc, kernel)
    assert isinstance(tree, NoCgroups)
    return tree


def mount_all_v1(kernel: StandIn, group: str = "/") -> None:
    for one in (("cpu", "cpuacct"), ("cpuset",), ("memory",), ("pids",), ("freezer",)):
        kernel.mount_v1(*one, group=group)


def text(place: Path, *parts: str) -> str:
    return place.joinpath(*parts).read_text().strip()


def groups_of(kernel: StandIn) -> list[Path]:
    return [path for path in kernel.top.rglob("prony-*") if parse_mark(path.name)]


# --- limits -----------------------------------------------------------------------------------------------


def test_v2_limits_are_written_as_its_kernel_reads_them(kernel: StandIn) -> None:
    kernel.mount_v2(*ALL)
    with opened(kernel) as tree:
        assert tree.version == "v2"
        assert tree.create("server").set_limits(WANTED) == {}
        folder = tree.places[0] / "part-server"
        assert text(folder, "cpuset.cpus") == "1"
        assert text(folder, "cpu.max") == "150000 100000"
        assert (text(folder, "memory.max"), text(folder, "memory.swap.max")) == (str(64 * 1024**2), "0")
        assert text(folder, "pids.max") == "20"


def test_v1_limits_are_written_as_its_kernel_reads_them(kernel: StandIn) -> None:
    mount_all_v1(kernel, group="/job")
    with opened(kernel) as tree:
        assert tree.version == "v1"
        assert tree.create("server").set_limits(WANTED) == {}
        folder = {place.parent.parent.name: place / "part-server" for place in tree.places}
        assert text(folder["cpuset"], "cpuset.cpus") == "1"
        assert text(folder["cpuset"], "cpuset.mems") == "0"
        assert text(folder["cpu,cpuacct"], "cpu.cfs_quota_us") == "150000"
        assert text(folder["memory"], "memory.limit_in_bytes") == str(64 * 1024**2)
        page = os.sysconf("SC_PAGE_SIZE")
        assert text(folder["memory"], "memory.memsw.limit_in_bytes") == str(64 * 1024**2 + page)
        assert text(folder["pids"], "pids.max") == "20"


def test_v1_without_accounts_of_swap_seeks_none(kernel: StandIn) -> None:
    mount_all_v1(kernel)
    with opened(kernel) as tree:
        group = tree.create("server")
        folder = kernel.top / "memory" / tree.places[0].name / "part-server"
        (folder / "memory.memsw.limit_in_bytes").unlink()
        assert group.set_limits(Limits(memory_bytes=2**20)) == {}
        assert text(folder, "memory.swappiness") == "0"


def test_v2_without_swap_limits_memory_alone(kernel: StandIn) -> None:
    kernel.mount_v2(*ALL)
    with opened(kernel) as tree:
        group = tree.create("server")
        (tree.places[0] / "part-server" / "memory.swap.max").unlink()
        assert group.set_limits(Limits(memory_bytes=2**20)) == {}


def test_a_limit_without_controller_is_refused_with_the_reason(kernel: StandIn) -> None:
    kernel.mount_v2("memory", "pids")
    with opened(kernel) as tree:
        assert set(tree.missing) == {"cpus", "cpu_quota"}
        refused = tree.create("server").set_limits(WANTED)
        assert refused == tree.missing
        assert "no controller `cpuset`" in refused["cpus"]


def test_cpus_that_the_kernel_does_not_give_are_refused(tmp_path: Path) -> None:
    class Stingy(StandIn):
        def write(self, path: Path, text: str) -> None:
            super().write(path, "0" if path.name == "cpuset.cpus" else text)

    (tmp_path / "stingy").mkdir()
    stingy = Stingy(tmp_path / "stingy")
    stingy.mount_v2(*ALL)
    with opened(stingy) as tree:
        assert "got [0]" in tree.create("server").set_limits(Limits(cpus=(1,)))["cpus"]


@pytest.mark.parametrize(
    "wrong", [{"cpus": ()}, {"cpu_quota": 0.0}, {"cpu_quota": float("nan")}, {"memory_bytes": 0}, {"pids": 0}]
)
def test_limits_that_no_kernel_holds_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"CPU|limit"):
        Limits(**wrong)  # type: ignore[arg-type]


# --- counters ---------------------------------------------------------------------------------------------


def test_v2_counters_are_read_in_their_units(kernel: StandIn) -> None:
    kernel.mount_v2(*ALL)
    with opened(kernel) as tree:
        assert tree.create("server").counters() == Counters(
            cpu_ns=70_000,
            cpu_user_ns=50_000,
            cpu_system_ns=20_000,
            periods=9,
            throttled_periods=4,
            throttled_ns=300_000,
            memory_current_bytes=4096,
            memory_peak_bytes=8192,
            memory_limit_hits=35,
            oom_kills=2,
            pids_peak=6,
            pids_limit_hits=3,
            cpu_stalled_ns=11_000,
            memory_stalled_ns=12_000,
            memory_full_stalled_ns=13_000,
            io_stalled_ns=14_000,
            io_full_stalled_ns=15_000,
        )


def test_v1_counters_are_read_in_their_units_and_the_rest_has_reasons(kernel: StandIn) -> None:
    mount_all_v1(kernel)
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    with opened(kernel) as tree:
        counters = tree.create("server").counters()
    known = {name: getattr(counters, name) for name in counters.names() if name not in counters.missing}
    assert known == {
        "cpu_ns": 70_000,
        "cpu_user_ns": 5 * tick_ns,
        "cpu_system_ns": 2 * tick_ns,
        "periods": 9,
        "throttled_periods": 4,
        "throttled_ns": 300_000,
        "memory_current_bytes": 4096,
        "memory_peak_bytes": 8192,
        "memory_limit_hits": 35,
        "oom_kills": 2,
        "pids_limit_hits": 3,
    }
    assert "pids.peak" in counters.missing["pids_peak"]
    assert counters.missing["io_stalled_ns"] == "cgroup v1 has no pressure figures"


def test_what_a_kernel_does_not_count_has_its_reason(kernel: StandIn) -> None:
    kernel.mount_v2(*ALL)
    with opened(kernel) as tree:
        group = tree.create("server")
        folder = tree.places[0] / "part-server"
        (folder / "memory.peak").unlink()
        (folder / "memory.events").write_text("max 1\n")
        counters = group.counters()
    assert (counters.memory_peak_bytes, counters.oom_kills) == (None, None)
    assert "memory.peak" in counters.missing["memory_peak_bytes"]
    assert counters.missing["oom_kills"] == "this kernel's `memory.events` has no `oom_kill`"


def test_a_difference_keeps_levels_and_reasons() -> None:
    before = Counters(cpu_ns=5, memory_peak_bytes=9, missing={"oom_kills": "then"})
    after = Counters(cpu_ns=7, memory_peak_bytes=10, oom_kills=3, periods=1)
    assert after - before == Counters(cpu_ns=2, memory_peak_bytes=10, missing={"oom_kills": "then"})


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,20}", fullmatch=True), st.integers(0, 2**63), max_size=8))
def test_pairs_are_read_as_they_were_written(values: dict[str, int]) -> None:
    assert parse_flat("".join(f"{name} {value}\n" for name, value in values.items())) == values


# --- where Prony is ---------------------------------------------------------------------------------------


def test_in_the_root_of_v2_prony_stays_where_it_is(kernel: StandIn) -> None:
    root = kernel.mount_v2(*ALL)
    with opened(kernel):
        assert str(os.getpid()) in text(root, "cgroup.procs").split()
        assert set(text(root, "cgroup.subtree_control").split()) == set(ALL)
    assert text(root, "cgroup.subtree_control") == ""


def test_in_a_group_of_v2_prony_moves_to_a_leaf_and_back(kernel: StandIn) -> None:
    group = kernel.mount_v2(*ALL, group="/user/scope")
    with opened(kernel) as tree:
        assert text(tree.places[0], "prony", "cgroup.procs") == str(os.getpid())
        assert text(group, "cgroup.procs") == ""
        assert tree.missing == {}
    assert text(group, "cgroup.procs") == str(os.getpid())
    assert text(group, "cgroup.subtree_control") == ""
    assert groups_of(kernel) == []


def test_with_others_in_its_group_of_v2_there_are_no_groups(kernel: StandIn) -> None:
    group = kernel.mount_v2(*ALL, group="/user/session")
    with (group / "cgroup.procs").open("a") as file:
        file.write("1\n")
    found = refused(kernel)
    assert found.reason == f"other processes are in the group that Prony was started in, `{group}`"
    assert "no other process" in str(found.hint)
    assert set(text(group, "cgroup.procs").split()) == {"1", str(os.getpid())}
    assert groups_of(kernel) == []


def test_controllers_that_v2_lacks_are_taken_from_v1(kernel: StandIn) -> None:
    mount_all_v1(kernel)
    kernel.mount_v2()
    with opened(kernel) as tree:
        assert (tree.version, tree.missing) == ("v1 and v2", {})
        group = tree.create("server")
        assert group.set_limits(WANTED) == {}
        counters = group.counters()
        # CPU time and pressure are v2's, what was throttled and killed is v1's.
        assert (counters.cpu_user_ns, counters.cpu_stalled_ns) == (50_000, 11_000)
        assert (counters.throttled_periods, counters.oom_kills) == (4, 2)
        assert len(group.join_paths) == len(tree.places) == 6
    assert groups_of(kernel) == []


def test_a_controller_may_be_on_either(kernel: StandIn) -> None:
    kernel.mount_v2("memory", "pids")
    kernel.mount_v1("cpuset")
    with opened(kernel) as tree:
        assert tree.create("server").set_limits(Limits(cpus=(0,), pids=5)) == {}
        assert set(tree.missing) == {"cpu_quota"}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_cannot_be_had_has_its_reason(kernel: StandIn, version: str) -> None:
    assert refused(kernel).reason == "no cgroups are mounted"
    folder = kernel.mount_v2(*ALL) if version == "v2" else kernel.mount_v1("memory", "pids")
    kernel.foreign.add(folder)
    assert "this user may not create groups" in refused(kernel).reason
    kernel.foreign.clear()
    kernel.read_only = True
    assert "read-only" in refused(kernel).reason
    kernel.read_only = False
    shutil.rmtree(folder)
    assert refused(kernel).reason


def test_in_a_container_the_mounted_part_is_where_prony_is() -> None:
    line = r"1 1 0:1 /docker/a\040b /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct"
    inside, outside = (
        find_hierarchies(line, f"2:cpu,cpuacct:{group}")[0].folder for group in ("/docker/a b/c", "/other")
    )
    assert inside == Path("/sys/fs/cgroup/cpu,cpuacct/c")
    assert outside is None


def test_named_hierarchies_and_other_mounts_are_none() -> None:
    mounts = (
        "1 1 0:1 / /proc rw - proc proc rw\n2 1 0:2 / /sys/fs/cgroup/systemd rw - cgroup x rw,name=systemd\n"
    )
    assert [one.controllers for one in find_hierarchies(mounts, "1:name=systemd:/")] == [{"name=systemd"}]
    assert find_hierarchies(mounts, "") == ()


# --- what is never touched --------------------------------------------------------------------------------


GONE = Mark(Identity(2**22 + 1, 1, boot_id()), own_mark().namespace)
OTHERS = (
    str(own_mark()),
    str(Mark(GONE.owner, 1)),
    str(Mark(Identity(2**22 + 1, 1, "0e6f1d4c-5a3b-4c2d-9e8f-7a6b5c4d3e2f"), GONE.namespace)),
    str(GONE) + "x",
    "x" + str(GONE),
    "prony",
    "prony-1",
    "system.slice",
    "part-server",
)


def plant(kernel: StandIn, paths: list[tuple[str, ...]], mount: Path) -> None:
    for parts in paths:
        folder = mount
        for part in parts:
            folder /= part
            if not folder.exists():
                kernel.make(folder)
    kernel.touched.clear()


PATHS = st.lists(
    st.lists(st.sampled_from((str(GONE), *OTHERS)), min_size=1, max_size=3).map(tuple), max_size=5
)


@settings(max_examples=25, deadline=None)
@given(PATHS)
def test_clearing_touches_only_what_bears_a_gone_pronys_mark(paths: list[tuple[str, ...]]) -> None:
    with TemporaryDirectory() as folder:
        kernel = StandIn(Path(folder))
        mount = kernel.mount_v2()
        plant(kernel, paths, mount)
        before = {path for path in mount.rglob("*") if path.is_dir()}
        clear_subtrees(kernel.proc, kernel)
        after = {path for path in mount.rglob("*") if path.is_dir()}
        assert after == {path for path in before if not is_to_go(path.relative_to(mount))}
        assert all(is_to_go(path.relative_to(mount)) for path in kernel.touched)


def is_to_go(path: Path) -> bool:
    """Return whether the outermost subtree on the way is the gone Prony's; within another's it is not."""
    marks = [mark for part in path.parts if (mark := parse_mark(part))]
    return bool(marks) and marks[0] == GONE


@settings(max_examples=10, deadline=None)
@given(PATHS, st.sampled_from(["/", "/a/b"]))
def test_opening_and_closing_leaves_all_others_as_they_were(paths: list[tuple[str, ...]], group: str) -> None:
    with TemporaryDirectory() as folder:
        kernel = StandIn(Path(folder))
        here = kernel.mount_v2(*ALL, group=group)
        plant(kernel, [path for path in paths if path[0] != OTHERS[0]], here)
        before = {path: path.read_text() for path in kernel.top.rglob("*") if path.is_file()}
        with opened(kernel) as tree:
            tree.create("server").set_limits(WANTED)
            place = tree.places[0]
        after = {path: path.read_text() for path in kernel.top.rglob("*") if path.is_file()}
        assert {path: content.split() for path, content in after.items()} == {
            path: content.split() for path, content in before.items()
        }
        outside = {path for path in kernel.touched if not path.is_relative_to(place)}
        assert outside <= {here / "cgroup.subtree_control", here / "cgroup.procs"}


def test_links_are_not_followed(kernel: StandIn) -> None:
    mount = kernel.mount_v2()
    plant(kernel, [(str(GONE),), ("innocent", "below")], mount)
    (mount / str(GONE) / "link").symlink_to(mount / "innocent")
    clear_subtrees(kernel.proc, kernel)
    assert not (mount / str(GONE)).exists()
    assert (mount / "innocent" / "below").is_dir()


def test_another_users_remains_are_left_alone(kernel: StandIn) -> None:
    mount = kernel.mount_v2()
    plant(kernel, [(str(GONE),)], mount)
    kernel.foreign.add(mount / str(GONE))
    assert clear_subtrees(kernel.proc, kernel) == []
    assert (mount / str(GONE)).is_dir()


def test_remains_in_which_this_prony_runs_are_kept(kernel: StandIn) -> None:
    mount = kernel.mount_v2()
    plant(kernel, [(str(GONE), "part-server")], mount)
    kernel._put(mount / str(GONE) / "part-server", os.getpid())
    assert [one.kept for one in clear_subtrees(kernel.proc, kernel)] == ["this Prony was started in it"]
    assert kernel.touched == []


def test_remains_of_both_versions_are_cleared_wherever_they_are(kernel: StandIn) -> None:
    mount_all_v1(kernel, group="/this/job")
    mount = kernel.mount_v2()
    plant(kernel, [("user", str(GONE), "prony"), ("user", str(GONE), "part-server", "own")], mount)
    plant(kernel, [("another", "job", str(GONE), "part-server")], kernel.top / "memory")
    assert [(one.name, one.kept) for one in clear_subtrees(kernel.proc, kernel)] == [(str(GONE), None)]
    assert groups_of(kernel) == []


@pytest.mark.parametrize("path", ["/sys/fs/cgroup", "/sys/fs/cgroup/prony-1", f"/a/{GONE}/../b"])
def test_a_group_that_is_not_pronys_is_never_killed_or_removed(kernel: StandIn, path: str) -> None:
    for end in (kill_all, remove_all):
        with pytest.raises(ValueError, match="not Prony's"):
            end(kernel, [Path(path)])
    assert kernel.touched == []


def test_processes_that_have_no_number_here_are_never_signalled(kernel: StandIn) -> None:
    # A signal to 0 would go to the test's own process group.
    mount = kernel.mount_v2()
    plant(kernel, [(str(GONE),)], mount)
    (mount / str(GONE) / "cgroup.procs").write_text("0\n")
    assert members(kernel, [mount / str(GONE)]) == (0,)
    assert kill_all(kernel, [mount / str(GONE)]) == 1
    assert clear_subtrees(kernel.proc, kernel)[0].kept is None


def test_a_group_that_cannot_be_made_whole_is_not_left_in_half(kernel: StandIn) -> None:
    mount_all_v1(kernel)
    with opened(kernel) as tree:
        kernel.foreign.add(kernel.top / "pids" / tree.places[0].name)
        with pytest.raises(HostError, match="server"):
            tree.create("server")
        assert list(kernel.top.rglob("part-server")) == []


def test_what_an_open_tree_is_asked_to_open_again_stays(kernel: StandIn) -> None:
    kernel.mount_v2(*ALL)
    with opened(kernel) as tree:
        tree.create("server")
        assert "already" in refused(kernel).reason
        assert (tree.places[0] / "part-server").is_dir()


def test_groups_in_groups_are_looked_through_whatever_their_depth(kernel: StandIn) -> None:
    place = top = kernel.mount_v2(*ALL)
    for _ in range(1500):
        place /= "d"
        place.mkdir()
    (place / "cgroup.procs").write_text("77\n")
    assert clear_subtrees(kernel.proc, kernel) == []
    assert 77 in members(kernel, [top])
    # pytest's own way to remove folders calls itself for each.
    remove_tree(top / "d")

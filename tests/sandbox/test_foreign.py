"""A control group into which somebody else has put a server: read, and told from Prony's own."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.sandbox.cgroup.scope import CgroupTree, ForeignGroup, ForeignGroups, open_cgroups
from prony.sandbox.cgroup.types import Counters, NoCgroups


@pytest.fixture
def tree() -> Iterator[CgroupTree]:
    found = open_cgroups()
    if isinstance(found, NoCgroups):
        pytest.skip(found.reason)
    with found:
        yield found


def test_a_server_that_somebody_put_into_a_group_is_counted_there_and_after_its_end(tree: CgroupTree) -> None:
    with tree.create("planted") as group, subprocess.Popen(["sleep", "100"]) as child:
        groups = ForeignGroups({"server": child.pid})
        assert groups.counters() == {}
        for path in group.join_paths:
            Path(path).write_text(str(child.pid))
        assert groups.counters()["server"].cpu_ns is not None
        child.kill()
        child.wait()
        assert groups.counters()["server"].cpu_ns is not None


def test_a_server_that_has_ended_before_anybody_looked_has_no_group() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert ForeignGroups({"server": gone.pid}).counters() == {}


def test_what_a_group_killed_before_is_not_this_subjects_and_a_shared_group_counts_once(
    tree: CgroupTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = [3]
    monkeypatch.setattr(ForeignGroup, "counters", lambda _self: Counters(oom_kills=killed[0]))
    with tree.create("shared") as group, subprocess.Popen(["sleep", "100"]) as child:
        for path in group.join_paths:
            Path(path).write_text(str(child.pid))
        groups = ForeignGroups({"server": child.pid, "frontend": child.pid})
        assert groups.kills() == {}
        killed[0] = 5
        assert (groups.kills(), list(groups.counters())) == ({"server": 2}, ["server"])
        child.kill()


def test_a_group_that_a_subject_is_put_into_later_is_counted_whole(
    tree: CgroupTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForeignGroup, "counters", lambda _self: Counters(oom_kills=2))
    with tree.create("later") as group, subprocess.Popen(["sleep", "100"]) as child:
        groups = ForeignGroups({"server": child.pid})
        for path in group.join_paths:
            Path(path).write_text(str(child.pid))
        assert groups.kills() == {"server": 2}
        child.kill()

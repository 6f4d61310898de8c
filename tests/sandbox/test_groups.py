"""Control groups as a run opens them: what is tried, what must hold, and what is told without them."""

from collections.abc import Mapping

import pytest

from prony.core.errors import HostError
from prony.model.sandbox import LimitHolding, LimitState, SandboxChoice, SandboxKind
from prony.sandbox.cgroup.scope import open_cgroups
from prony.sandbox.cgroup.types import LimitName, NoCgroups
from prony.sandbox.groups import open_groups, require, states_by_affinity


@pytest.fixture
def groups() -> None:
    found = open_cgroups()
    if isinstance(found, NoCgroups):
        pytest.skip(found.reason)
    found.close()


@pytest.mark.usefixtures("groups")
def test_what_is_asked_for_is_tried_and_what_has_a_ceiling() -> None:
    with open_groups(SandboxChoice(SandboxKind.CGROUP, pids=100)) as opened:
        assert opened is not None
        assert sorted(opened.states) == ["cpus", "memory", "pids"]


@pytest.mark.usefixtures("groups")
def test_a_required_limit_that_was_found_not_to_hold_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    states: Mapping[LimitName, LimitState] = {"pids": LimitState("absent", "a bomb was not held")}
    monkeypatch.setattr("prony.sandbox.groups.probe_limits", lambda _tree, _limits: states)
    with (
        pytest.raises(HostError, match="the limit `pids` does not hold here: a bomb was not held"),
        open_groups(SandboxChoice(SandboxKind.CGROUP, pids=100), required={"pids"}),
    ):
        pytest.fail("it was opened")
    with open_groups(SandboxChoice(SandboxKind.CGROUP, pids=100)) as opened:
        assert opened is not None


def test_a_limit_that_holds_may_be_required() -> None:
    require({"memory": LimitState(LimitHolding.ENFORCED, "a hog was killed")}, {"memory"})


@pytest.mark.parametrize(
    ("quota", "holding"), [(2.0, "by affinity only"), (1.0, "by affinity only"), (0.5, "absent")]
)
def test_without_groups_whole_cpus_are_held_by_affinity(quota: float, holding: str) -> None:
    assert states_by_affinity(SandboxChoice(cpu_quota=quota))["cpu_quota"].holding == holding


def test_without_groups_memory_and_pids_are_absent() -> None:
    states = states_by_affinity(SandboxChoice(memory_bytes=2**29, pids=9))
    assert {name: state.holding for name, state in states.items()} == {"memory": "absent", "pids": "absent"}


def test_without_groups_the_kernel_holds_the_ceiling_of_processes_for_each_user() -> None:
    states = states_by_affinity(SandboxChoice())
    assert {name: state.holding for name, state in states.items()} == {"memory": "absent", "pids": "enforced"}

import pytest

from prony.core.errors import HostError, UsageError
from prony.model.sandbox import SandboxChoice, SandboxKind
from prony.sandbox.cgroup.types import NoCgroups
from prony.sandbox.choice import Absent, Available, Chosen, Wish, choose
from prony.sandbox.groups import look

NO_GROUPS = Available({"cgroup": Absent("this user may not create groups", "run Prony as root")})


def test_auto_takes_control_groups_where_there_are_some() -> None:
    assert choose(Wish(), Available()) == Chosen(SandboxChoice(SandboxKind.CGROUP))


def test_auto_takes_less_where_there_are_none_and_says_why() -> None:
    chosen = choose(Wish(), NO_GROUPS)
    assert chosen.choice.kind == "process"
    assert chosen.reasons == ("no control groups here: this user may not create groups",)


@pytest.mark.parametrize("network", ["host", "isolated"])
def test_auto_leaves_the_network_as_it_was_wished(network: str) -> None:
    choice = SandboxChoice(network=network, share_cpus=True, run_as="me")  # type: ignore[arg-type]
    for available in (Available(), NO_GROUPS):
        taken = choose(Wish(choice=choice), available).choice
        assert (taken.network, taken.share_cpus, taken.run_as) == (network, True, "me")


def test_a_kind_that_is_named_is_taken_without_a_reason() -> None:
    assert choose(Wish(SandboxKind.PROCESS), NO_GROUPS) == Chosen(SandboxChoice(SandboxKind.PROCESS))


def test_a_kind_that_cannot_be_had_is_refused_with_what_would_help() -> None:
    with pytest.raises(HostError) as caught:
        choose(Wish(SandboxKind.CGROUP), NO_GROUPS)
    assert caught.value.message == (
        "`--sandbox cgroup` is not available, no control groups: this user may not create groups"
    )
    assert caught.value.hint == "run Prony as root"


def test_a_limit_that_was_typed_must_hold() -> None:
    wish = Wish(choice=SandboxChoice(pids=9), typed={"pids": "--pids 9"})
    assert choose(wish, Available()).required == {"pids"}
    with pytest.raises(HostError) as caught:
        choose(wish, NO_GROUPS)
    assert caught.value.message == "`--pids 9` cannot be enforced here: this user may not create groups"
    assert caught.value.hint == "run Prony as root"


def test_a_limit_whose_controller_is_missing_is_refused_with_that_reason() -> None:
    available = Available(missing={"memory": "the controller `memory` is not mounted"})
    wish = Wish(choice=SandboxChoice(memory_bytes=9), typed={"memory": "--memory 9"})
    with pytest.raises(HostError, match="`--memory 9` cannot be enforced here: the controller `memory` is"):
        choose(wish, available)
    assert choose(Wish(typed={"pids": "--pids 9"}), available).required == {"pids"}


def test_limits_of_the_kind_that_holds_none_are_a_mistake_of_the_user() -> None:
    with pytest.raises(UsageError) as caught:
        choose(Wish(SandboxKind.PROCESS, typed={"cpu_quota": "--cpus 0.5"}), Available())
    assert caught.value.message == (
        "`--cpus 0.5`: the sandbox `process` cannot enforce limits; expected `cgroup` or `container`"
    )
    assert caught.value.hint == "leave out `--sandbox process` or `--cpus`"


def test_limits_that_a_study_asks_for_are_never_refused() -> None:
    choice = SandboxChoice(cpu_quota=2, memory_bytes=2**29)
    taken = choose(Wish(choice=choice), NO_GROUPS)
    assert (taken.choice.memory_bytes, taken.required) == (2**29, frozenset())


def test_looking_tells_why_there_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.sandbox.groups.gain_cgroups", lambda: NoCgroups("planted", "do that"))
    assert look(("cgroup", "process")) == Available({"cgroup": Absent("planted", "do that")})
    assert look(("process",)) == Available()


def test_looking_leaves_nothing() -> None:
    before = look(("cgroup",))
    assert look(("cgroup",)) == before

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.core.errors import HostError
from prony.machine.cpus import Cpu
from prony.model.sandbox import Placement, SandboxChoice
from prony.sandbox.placement import place, place_in


@pytest.mark.parametrize(
    ("cores", "threads", "server", "generator"),
    [
        ([0, 1], 1, (0,), (1,)),
        ([0, 0], 1, (0,), (1,)),
        ([0, 1, 2], 1, (0, 1), (2,)),
        ([0, 1, 2, 3], 1, (0, 1), (2, 3)),
        ([0, 0, 2, 2], 1, (0, 1), (2, 3)),
        ([0, 1, 0, 1], 1, (0, 2), (1, 3)),
        ([0, 1, 2, 3], 3, (0,), (1, 2, 3)),
        ([0, 1], 8, (0,), (1,)),
    ],
    ids=[
        "two: one each",
        "two threads of one core: one each",
        "three: the server gets more",
        "four: half each",
        "hardware threads of one core stay together",
        "also when they are numbered apart",
        "a generator of three threads gets three",
        "never without a server",
    ],
)
def test_placement(
    cores: list[int], threads: int, server: tuple[int, ...], generator: tuple[int, ...]
) -> None:
    cpus = [Cpu(number, core) for number, core in enumerate(cores)]
    assert place(cpus, engine_threads=threads) == Placement(server, generator)


def test_one_cpu_is_refused_unless_it_may_be_shared() -> None:
    with pytest.raises(HostError, match="Prony may use 1 CPU") as caught:
        place([Cpu(0, 0)])
    assert caught.value.exit_code == 3
    assert place([Cpu(0, 0)], share=True) == Placement((0,), (0,), shared=True)


@pytest.mark.parametrize(("threads", "generator"), [(1, (1,)), (2, (0, 1)), (8, (0, 1))])
def test_where_cpus_are_shared_the_server_has_all_and_the_generator_the_last_of_them(
    threads: int, generator: tuple[int, ...]
) -> None:
    cpus = [Cpu(0, 0), Cpu(1, 1)]
    assert place(cpus, share=True, engine_threads=threads) == Placement((0, 1), generator, shared=True)


@pytest.mark.parametrize(
    ("cores", "quota", "server", "generator"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], 2.0, (0, 1), (4, 5, 6, 7)),
        ([0, 0, 2, 2, 4, 4, 6, 6], 2.0, (0, 2), (4, 5, 6, 7)),
        ([0, 1, 2, 3, 0, 1, 2, 3], 3.0, (0, 1, 4), (2, 3, 6, 7)),
        ([0, 1, 2, 3], 0.5, (0,), (2, 3)),
        ([0, 1, 2, 3], 1.5, (0, 1), (2, 3)),
        ([0, 1], 2.0, (0,), (1,)),
    ],
    ids=[
        "two of eight: two",
        "two of four cores with two threads each: a core each",
        "three of two cores: the second thread of one too",
        "half a CPU: one",
        "one and a half: two",
        "two CPUs: half of them, whatever was asked for",
    ],
)
def test_a_limit_of_cpus_bounds_how_many_the_server_gets(
    cores: list[int], quota: float, server: tuple[int, ...], generator: tuple[int, ...]
) -> None:
    cpus = [Cpu(number, core) for number, core in enumerate(cores)]
    assert place_in(SandboxChoice(cpu_quota=quota), cpus) == Placement(server, generator)


@given(
    st.lists(st.integers(0, 7), min_size=2, max_size=32),
    st.integers(1, 4),
    st.none() | st.floats(0.1, 40),
)
def test_server_and_generator_share_no_cpu_and_no_core_if_there_are_two(
    cores: list[int], threads: int, quota: float | None
) -> None:
    cpus = [Cpu(number, core) for number, core in enumerate(cores)]
    placement = place_in(SandboxChoice(cpu_quota=quota), cpus, threads)
    server, generator = set(placement.server_cpus), set(placement.generator_cpus)
    assert server and generator and not placement.shared
    assert not server & generator
    if len(set(cores)) > 1:
        assert not {cores[cpu] for cpu in server} & {cores[cpu] for cpu in generator}

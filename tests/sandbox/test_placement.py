import pytest

from prony.errors import HostError
from prony.host import Cpu
from prony.model import Placement
from prony.sandbox.placement import place


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


def test_cpus_that_may_be_shared_belong_to_both() -> None:
    assert place([Cpu(0, 0), Cpu(1, 1)], share=True) == Placement((0, 1), (0, 1), shared=True)

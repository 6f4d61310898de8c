"""Settings of several values: which subjects they make, what these are called, and how many there may be."""

from dataclasses import replace

import pytest

from prony.core.errors import UsageError
from prony.core.units import MIB
from prony.model.plan import Cell
from prony.model.sandbox import SandboxChoice
from prony.model.subject import App, Frontend, Interface, Subject, is_named
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.plan.factors import (
    MOST_SUBJECTS,
    Choices,
    check_size,
    name_with,
    seated,
    shared_sandbox,
    without_levels,
)

HELLO = App("hello", "", "", {Interface.WSGI: "hello:app"})
PLAIN = Subject("gunicorn@nginx+hello", "gunicorn", HELLO, Interface.WSGI, frontend=Frontend("nginx"))
LOAD = Workload(ClosedLoop(10), DurationStop(1))


def made(**choices):
    return list(seated(PLAIN, SandboxChoice(), Choices(**choices)))


def names(**choices):
    return [one.subject.name for one in made(**choices)]


def test_all_combinations_are_subjects_with_names_of_their_own():
    assert names(server={"workers": (2, 4), "threads": (1, 8), "timeout": 5}) == [
        "gunicorn@nginx[workers=2 threads=1]+hello",
        "gunicorn@nginx[workers=2 threads=8]+hello",
        "gunicorn@nginx[workers=4 threads=1]+hello",
        "gunicorn@nginx[workers=4 threads=8]+hello",
    ]


def test_a_subject_has_the_settings_of_its_name_and_those_that_all_share():
    last = made(server={"workers": (2, "2*{cpus}"), "timeout": 5})[-1].subject
    assert last.settings == {"workers": "2*{cpus}", "timeout": 5}
    assert last.levels == {"workers": "2*{cpus}"}


def test_settings_of_one_value_leave_the_name_alone():
    assert names(server={"workers": 2}, sandbox={"memory": "1G"}) == ["gunicorn@nginx+hello"]


def test_a_setting_of_a_frontend_is_the_frontends():
    first, second = made(server={"workers": 2}, frontend={"workers": (1, 4)})
    assert second.subject.name == "gunicorn@nginx[workers=4]+hello"
    assert (second.subject.settings, second.subject.frontend.settings) == ({"workers": 2}, {"workers": 4})
    assert first.subject.levels == {"nginx.workers": 1}


def test_two_settings_of_one_name_keep_their_owners_in_it():
    assert names(server={"workers": (1, 2)}, frontend={"workers": (1, 2)})[0] == (
        "gunicorn@nginx[workers=1 nginx.workers=1]+hello"
    )


def test_limits_and_settings_of_the_kernel_are_the_sandboxs():
    chosen = {"memory": ("256M", "1G"), "cpus": "0.5", "sysctl.net.core.somaxconn": (128, 1024)}
    first, *_, last = made(sandbox=chosen)
    assert last.subject.name == "gunicorn@nginx[memory=1G somaxconn=1024]+hello"
    assert first.sandbox == SandboxChoice(
        memory_bytes=256 * MIB, cpu_quota=0.5, sysctl=(("net.core.somaxconn", "128"),)
    )


def test_settings_of_the_kernel_may_have_a_name_together():
    kernels = {"article": {"net.ipv4.ip_local_port_range": "1024 65535", "net.ipv4.tcp_tw_reuse": 1}}
    found = made(sandbox={"kernel": ("as-found", "article")}, kernels=kernels)
    assert [one.subject.name for one in found] == [
        "gunicorn@nginx[kernel=as-found]+hello",
        "gunicorn@nginx[kernel=article]+hello",
    ]
    assert [one.sandbox.sysctl for one in found] == [
        (),
        (("net.ipv4.ip_local_port_range", "1024\t65535"), ("net.ipv4.tcp_tw_reuse", "1")),
    ]


def test_subjects_that_differ_in_a_limit_on_purpose_share_a_sandbox_otherwise():
    cells = [
        Cell(k, one.subject, LOAD, sandbox=one.sandbox)
        for k, one in enumerate(made(sandbox={"memory": ("1M", "2M"), "pids": 7}))
    ]
    assert [shared_sandbox(cell) for cell in cells] == [SandboxChoice(pids=7)] * 2


def test_the_name_without_levels_is_that_of_the_grid():
    one = replace(made(server={"workers": ("{cpus}+1", 3)})[0].subject, variant="gthread")
    assert one.name == "gunicorn@nginx[workers={cpus}+1]+hello"
    assert without_levels(one) == "gunicorn-gthread@nginx+hello"


def test_values_in_a_name_have_no_blanks():
    assert name_with("a+b", {"x": "2 * {cpus} + 1", "sysctl.y": "1 2"}) == "a[x=2*{cpus}+1 y=1-2]+b"


@pytest.mark.parametrize("name", ["g[workers=4 threads=8]+x", "g[workers=2*{cpus}]+x"])
def test_a_subjects_own_name_and_a_pattern_of_it_name_it(name):
    assert is_named(name, name)
    assert is_named(name, "g[[]workers*")
    assert is_named(name, name.partition(" ")[0][:11] + "*")
    assert not is_named("gw+x", "g[workers=4]+x")


# --- how many ---------------------------------------------------------------------------------------------


def test_a_grid_within_the_limit_passes():
    check_size({"a+x": {"workers": tuple(range(8)), "threads": tuple(range(8))}})


def test_a_grid_that_is_too_large_names_what_to_leave_out():
    with pytest.raises(UsageError) as refused:
        check_size({"a+x": {"workers": tuple(range(1, 21)), "threads": (1, 2, 4, 8)}})
    assert refused.value.message == ("the settings of `a+x` make 20 x 4 = 80 subjects; expected at most 64")
    assert refused.value.hint.startswith("leave out values of `workers`: 16 of its 20 fit, such as 1,2,")
    assert refused.value.hint.endswith(",20")


def test_what_is_advised_fits():
    factors = {"workers": tuple(range(1, 41)), "threads": (1, 2, 4)}
    with pytest.raises(UsageError) as refused:
        check_size({"a+x": factors})
    kept = tuple(map(int, refused.value.hint.rpartition(" ")[2].split(",")))
    assert len(set(kept)) == len(kept) == MOST_SUBJECTS // 3
    check_size({"a+x": {**factors, "workers": kept}})


def test_several_servers_count_together():
    grid = {"workers": tuple(range(40))}
    with pytest.raises(UsageError, match="with those of the others 80; expected at most 64"):
        check_size({"a+x": grid, "b+x": grid, "c+x": {"workers": 1}})

"""Limits and settings of the kernel in which subjects differ must hold, or the study does not begin."""

import pytest

from prony.core.errors import HostError
from prony.core.sysctl import OF_A_NAMESPACE, why_not
from prony.core.units import MIB
from prony.machine.cpus import Cpu
from prony.model.plan import Cell, Plan
from prony.model.sandbox import Network, SandboxChoice, SandboxFacts, SandboxKind
from prony.model.subject import App, Interface, Subject
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.plan.factors import Choices, seated
from prony.sandbox.linux import read_network_settings
from prony.sandbox.process import kernel_of
from prony.study.admission import limits_to_hold, refuse_kernel_of_host
from prony.study.task import placement_of_subject

PLAIN = Subject("waitress+hello", "waitress", App("hello", "", "", {}), Interface.WSGI)
LOAD = Workload(ClosedLoop(1), DurationStop(1))
CPUS = tuple(Cpu(number, number) for number in range(8))


def plan_of(kind=SandboxKind.CGROUP, **sandbox):
    found = seated(PLAIN, SandboxChoice(kind), Choices(sandbox=sandbox))
    cells = tuple(Cell(k, one.subject, LOAD, sandbox=one.sandbox) for k, one in enumerate(found))
    return Plan("p", "", "", "quick", cells, 1, 1)


def test_a_limit_in_which_subjects_differ_must_hold():
    asked, required = limits_to_hold(plan_of(memory=("64M", "1G"), pids=9), ("cpu_quota",))
    assert required == {"memory", "cpu_quota"}
    assert (asked.memory_bytes, asked.pids) == (1024 * MIB, 9)


def test_without_control_groups_it_does_not():
    with pytest.raises(HostError, match="the subjects differ in the limit `memory`"):
        limits_to_hold(plan_of(SandboxKind.PROCESS, memory=("64M", "1G")), ())
    limits_to_hold(plan_of(SandboxKind.PROCESS, memory="1G"), ())


def test_each_subject_has_the_cpus_of_its_limit_and_the_generator_the_same_beside_each():
    plan = plan_of(cpus=(1, "2.5"))
    one, three = (placement_of_subject(plan, each.name, CPUS) for each in plan.subjects())
    assert (len(one.server_cpus), len(three.server_cpus)) == (1, 3)
    assert one.generator_cpus == three.generator_cpus
    assert plan.sandbox.cpu_quota == 2.5


def test_settings_of_the_kernel_are_refused_on_the_hosts_network():
    plan = plan_of(**{"sysctl.net.core.somaxconn": (1, 2)})
    refuse_kernel_of_host(plan, SandboxFacts(network=Network.ISOLATED))
    with pytest.raises(HostError, match="cannot be set for a trial alone"):
        refuse_kernel_of_host(plan, SandboxFacts(network=Network.HOST, missing={}))
    with pytest.raises(HostError, match="would be set for the whole machine"):
        kernel_of(plan.cells[0].sandbox, isolated=False)


def test_what_is_copied_into_a_network_may_be_set_there():
    found = read_network_settings()
    assert "net.core.somaxconn" in found
    assert set(found) <= set(OF_A_NAMESPACE)
    assert [why_not(name, value) for name, value in found.items()] == [None] * len(found)

"""Whether a machine is fit: each check on machines that fit and on those that do not, and all on this one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.machine.activity import Activity
from prony.machine.checks import (
    HostCheck,
    accept_backlog,
    backlogs,
    cpu_quota,
    disk_space,
    file_limit,
    free_memory,
    governor,
    kept_ports,
    port_turnover,
    ports,
    processors,
    server_files,
    share_of_time,
    swap,
    tasks,
    time_wait_left,
    tracking,
)
from prony.machine.cpus import Cpu
from prony.machine.preflight import Demand, preflight, unfit

GIB = 1024**3
RANGE = 'sudo sysctl -w net.ipv4.ip_local_port_range="10000 65535"'
REUSE = "sudo sysctl -w net.ipv4.tcp_tw_reuse=2"


@pytest.mark.parametrize(
    ("check", "level", "command"),
    [
        (file_limit(1000, 20_000), "ok", None),
        (file_limit(1000, None), "ok", None),
        (file_limit(20_000, 20_000), "fail", "sudo prlimit --pid $$ --nofile=20100:20100"),
        (server_files({"a": 10, "b": 5000}, 1024), "fail", "sudo prlimit --pid $$ --nofile=5100:5100"),
        (server_files({"a": 10, "b": 500}, 1024), "ok", None),
        (tasks(10, None, None), "ok", None),
        (tasks(1000, 512, None), "fail", "ulimit -u 1064"),
        (tasks(1000, 512, 4096), "fail", "ulimit -u 1064"),
        (tasks(1000, 4096, 512), "fail", "start the container with --pids-limit 1064"),
        (ports(1000, 32768, 60999), "ok", None),
        (ports(20_000, 32768, 60999, several=False), "warn", RANGE),
        (ports(40_000, 32768, 60999, several=False), "fail", RANGE),
        (ports(40_000, 32768, 60999), "ok", None),
        (accept_backlog("net/core/somaxconn", 1000, 4096), "ok", None),
        (accept_backlog("net/core/somaxconn", 1000, 128), "warn", "sudo sysctl -w net.core.somaxconn=1000"),
        (accept_backlog("net/core/somaxconn", 1000, None), "warn", None),
        (backlogs({"gunicorn": 2048}, 4096), "ok", None),
        (backlogs({"gunicorn": 2048}, 128), "warn", "sudo sysctl -w net.core.somaxconn=2048"),
        (backlogs({"gunicorn": 2048}, None), "warn", None),
        (tracking(1000, None, None), "ok", None),
        (tracking(1000, 100, 262_144), "ok", None),
        (tracking(1000, 100, 1000), "warn", "sudo sysctl -w net.netfilter.nf_conntrack_max=2100"),
        (time_wait_left(25_000, 28_232, own_network=True, reuse=0), "ok", None),
        (time_wait_left(100, 28_232, own_network=False, reuse=0), "ok", None),
        (time_wait_left(25_000, 28_232, own_network=False, reuse=2), "ok", None),
        (time_wait_left(25_000, 28_232, own_network=False, reuse=0), "warn", "sleep 60"),
        (time_wait_left(25_000, 28_232, own_network=False, reuse=None), "warn", "sleep 60"),
        (time_wait_left(None, 28_232, own_network=False, reuse=2), "warn", None),
        (processors([Cpu(0, 0), Cpu(1, 1)]), "ok", None),
        (processors([Cpu(0, 0), Cpu(1, 0)]), "warn", None),
        (processors([Cpu(0, 0)]), "fail", "prony ... --share-cpus"),
        (processors([Cpu(0, 0)], share=True), "warn", None),
        (cpu_quota(None, 8), "ok", None),
        (cpu_quota(8.0, 8), "ok", None),
        (cpu_quota(4.0, 8), "warn", "start the container with --cpuset-cpus instead of --cpus"),
        (cpu_quota(1.5, 8), "fail", "start the container with --cpuset-cpus instead of --cpus"),
        (governor(["performance"]), "ok", None),
        (governor(["none"]), "ok", None),
        (governor(["performance", "powersave"]), "warn", "sudo cpupower frequency-set -g performance"),
        (share_of_time("steal now", 0.005, 0.01, "wait"), "ok", None),
        (share_of_time("steal now", 0.02, 0.01, "wait"), "warn", "wait"),
        (share_of_time("steal now", None, 0.01, "wait"), "warn", None),
        (free_memory(1000, None, 8 * GIB), "ok", None),
        (free_memory(1000, None, GIB // 2), "warn", "top -o %MEM"),
        (free_memory(10_000, None, GIB // 4), "fail", "top -o %MEM"),
        (free_memory(10, 4 * GIB, 3 * GIB), "fail", "top -o %MEM"),
        (free_memory(10, None, None), "warn", None),
        (swap(0, 0, 0), "ok", None),
        (swap(GIB, GIB, None), "ok", None),
        (swap(GIB, GIB // 2, 0), "warn", "sudo swapoff -a"),
        (swap(None, None, None), "warn", None),
        (disk_space(GIB, 2 * GIB, "/results"), "ok", None),
        (disk_space(2 * GIB, GIB, "/results"), "fail", "prony clean --all"),
        (disk_space(GIB, None, "/results"), "warn", None),
    ],
)
def test_a_check_says_how_bad_it_is_and_what_mends_it(check, level, command):
    assert (check.level, check.command) == (level, command)


@pytest.mark.parametrize(
    ("new_per_s", "reuse", "level", "command"),
    [
        (0.0, 2, "ok", None),
        (0.0, 0, "warn", REUSE),
        (None, 2, "ok", None),
        (None, 0, "warn", REUSE),
        (400.0, 0, "ok", None),
        (600.0, 0, "fail", REUSE),
        (600.0, 2, "ok", None),
        (40_000.0, 1, "fail", RANGE),
    ],
)
def test_connections_that_are_opened_anew_need_ports_for_the_time_they_wait(new_per_s, reuse, level, command):
    check = port_turnover(new_per_s, 100, load_s=60, count=28_232, reuse=reuse)
    assert (check.level, check.command) == (level, command)


def test_a_short_load_uses_up_no_more_ports_than_it_opens():
    assert kept_ports(600, 100, load_s=10, reuse=False) == 6100


def test_the_subject_that_holds_most_is_named():
    assert "for b" in server_files({"a": 10, "b": 5000}, 1024).wanted
    assert "b asks for 2,048" in backlogs({"a": 100, "b": 2048}, 128).wanted
    assert "a asks" not in backlogs({"a": 100, "b": 2048}, 128).wanted


def test_only_what_makes_figures_invalid_makes_a_machine_unfit():
    found = [HostCheck("a", "ok", "1", "1"), HostCheck("b", "warn", "2", "3", "mend b")]
    assert unfit(found) == ()
    assert unfit([*found, HostCheck("c", "fail", "4", "5", "mend c")]) == ("c: 4; needed: 5; fix: mend c",)


@given(st.integers(1, 65_535), st.integers(1, 64))
def test_the_generators_threads_share_its_connections_and_none_is_lost(connections, threads):
    each = Demand(connections, threads).connections_per_thread
    assert (each - 1) * threads < connections <= each * threads


@given(st.integers(1, 60_000), st.integers(1, 60_000), st.integers(1, 100_000))
def test_more_connections_never_fit_better(few, more, hard):
    ranks = {"ok": 0, "warn": 1, "fail": 2}
    low, high = sorted((few, more))
    assert ranks[file_limit(low, hard).level] <= ranks[file_limit(high, hard).level]
    assert ranks[ports(low, 32768, 60999).level] <= ranks[ports(high, 32768, 60999).level]


# --- on this machine --------------------------------------------------------------------------------------

QUIET = Activity({"busy": 0.0, "steal": 0.0, "soft_irq": 0.0}, {}, 0)


def test_each_check_has_a_name_of_its_own_and_says_what_was_found_and_wanted(tmp_path):
    demand = Demand(backlogs={"gunicorn": 2048}, archive=(tmp_path, 1000))
    found = preflight(demand, QUIET)
    names = [check.name for check in found]
    assert len(names) == len(set(names)) == 19
    assert all(check.found and check.wanted for check in found)
    assert all(check.command is None for check in found if check.level == "ok")


def test_a_demand_that_no_machine_meets_makes_this_one_unfit(tmp_path):
    demand = Demand(connections=70_000, several_sources=False, archive=(tmp_path, 10**18))
    found = {check.name: check for check in preflight(demand, QUIET)}
    assert found["ports"].level == found["disk space"].level == "fail"


def test_a_folder_that_is_not_there_has_no_free_space_and_that_is_told():
    found = preflight(Demand(archive=(Path("/no/such/folder"), 1000)), QUIET)
    check = next(check for check in found if check.name == "disk space")
    assert (check.level, check.found) == ("warn", "not known")


def test_what_else_runs_is_named():
    seen = Activity({"busy": 0.6, "steal": 0.0, "soft_irq": 0.0}, {"cron": 0.5}, 0)
    check = next(check for check in preflight(Demand(), seen) if check.name == "other load now")
    assert check.level == "warn"
    assert "60.00 % (cron)" in check.found

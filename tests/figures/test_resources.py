"""CPU and memory of process trees whose members come and go."""

from dataclasses import replace

import pytest

from prony.figures.missing import Missing
from prony.figures.resources import (
    cpu_share,
    machine_metrics,
    memory_metrics,
    process_metrics,
    threads_at_work,
)
from prony.figures.trial_metrics import role_metrics, trial_metrics
from prony.model.observation import Phase, ProcessRow, Sample
from prony.model.trial import Ok, Trial, TrialRole

SECOND = 1_000_000_000


def process(pid, cpu_s, *, born=1, role="worker", rss=10, pss=None):
    return ProcessRow(pid, born, role, "server", round(cpu_s * SECOND), 0, rss, 2 * rss, 1, pss, None)


def sample(second, *processes, phase=Phase.WINDOW, busy_s=0.0, steal_s=0.0):
    idle = round((2 * second - busy_s - steal_s) * SECOND)
    return Sample(second * SECOND, phase, processes, round(busy_s * SECOND), idle, round(steal_s * SECOND))


def test_what_was_used_before_the_window_does_not_count():
    assert cpu_share([sample(0, process(1, 100)), sample(10, process(1, 105))]) == 0.5


def test_a_process_born_in_the_window_counts_whole():
    samples = [
        sample(0, process(1, 0)),
        sample(5, process(1, 1), process(2, 1)),
        sample(10, process(1, 2), process(2, 3)),
    ]
    assert cpu_share(samples) == 0.5


def test_a_process_that_died_counts_up_to_its_last_sample():
    samples = [sample(0, process(1, 2)), sample(5, process(1, 4)), sample(10)]
    assert cpu_share(samples) == 0.2


def test_threads_at_work_are_those_of_roles_of_which_one_used_a_hundredth_of_a_cpu():
    def window(of_master, *of_workers):
        at = [
            [
                process(1, of_master * k, role="master"),
                *(process(2 + w, x * k) for w, x in enumerate(of_workers)),
            ]
            for k in range(11)
        ]
        return [sample(second, *rows) for second, rows in enumerate(at)]

    assert threads_at_work(window(0.009, 0.9)) == 1
    assert threads_at_work(window(0.011, 0.9)) == 2
    # An idle worker beside a busy one may work, too.
    assert threads_at_work(window(0.009, 0.9, 0.0)) == 2
    assert threads_at_work(window(0.009, 0.009)) == 0
    (*most, last) = window(0.009, 0.9)
    grown = replace(last, processes=(last.processes[0], replace(last.processes[1], threads=5)))
    assert threads_at_work([*most, grown]) == 5


def test_a_process_that_was_not_there_all_the_time_may_have_worked():
    window = [sample(second, process(1, 0.9 * second), process(4, 0, role="master")) for second in range(11)]
    assert threads_at_work(window) == 1
    *most, last = window
    assert threads_at_work([*most, replace(last, processes=(*last.processes, process(3, 0)))]) == 2
    as_master = process(3, 0, role="master")
    assert threads_at_work([*most, replace(last, processes=(*last.processes, as_master))]) == 3


def test_the_peak_of_the_cpu_is_that_of_the_busiest_half_second():
    steps = [(0.0, 0.0), (0.1, 0.1), (0.5, 0.2), (1.0, 0.7), (1.5, 0.8)]
    samples = [
        replace(sample(0, process(1, used)), monotonic_ns=round(second * SECOND)) for second, used in steps
    ]
    # Each of these used its tenth of a second whole, too short a time to count; from 0.5 s to 1 s is 100 %.
    assert process_metrics(samples)["cpu_percent_peak"] == pytest.approx(100)
    assert process_metrics(samples)["cpu_percent"] == pytest.approx(100 * 0.8 / 1.5)
    assert isinstance(process_metrics(samples[:2])["cpu_percent_peak"], Missing)


def test_the_peak_of_the_memory_with_files_is_that_of_the_control_groups():
    trial = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0)
    peaks = {"cgroup.server.memory_peak_bytes": 5, "cgroup.frontend.memory_peak_bytes": 2}
    assert trial_metrics(replace(trial, counters=peaks))["memory_peak"] == 7
    assert isinstance(trial_metrics(trial)["memory_peak"], Missing)


def test_what_lived_between_two_samples_counts_where_control_groups_count_it():
    samples = (sample(0, process(1, 0)), sample(10, process(1, 1)))
    trial = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, samples=samples)
    assert trial_metrics(trial)["cpu_percent"] == 10.0
    parts = {"cgroup.server.cpu_ns": 4 * SECOND, "cgroup.frontend.cpu_ns": 2 * SECOND}
    assert trial_metrics(replace(trial, counters=parts))["cpu_percent"] == 60.0
    # A reading that is a moment shorter than the samples' takes nothing away.
    assert (
        trial_metrics(replace(trial, counters={"cgroup.server.cpu_ns": 9 * SECOND // 10}))["cpu_percent"]
        == 10.0
    )


def roles_at(*last, **parts_s):
    """Return what a database and its server used by role, and in all, in 10 s that began with a process each
    and ended with ``last``; ``parts_s``: what was counted by part, in seconds.
    """
    first = (process(1, 0, role="master"), process(2, 0, role="database"))
    samples = (sample(0, *first), sample(10, process(1, 1, role="master"), *last))
    counters = {f"cgroup.{name}.cpu_ns": round(value * SECOND) for name, value in parts_s.items()}
    trial = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, samples=samples, counters=counters)
    return role_metrics(trial), trial_metrics(trial)


def cpu_of(roles):
    names = ("cpu_percent", "cpu_unsampled_percent")
    return {role: tuple(round(one[name], 6) for name in names) for role, one in roles.items()}


def test_what_lived_between_two_samples_is_the_only_role_of_its_part():
    roles, found = roles_at(process(2, 2, role="database"), server=1, postgresql=5)
    assert cpu_of(roles) == {"database": (50.0, 0.0), "master": (10.0, 0.0)}
    assert (pytest.approx(found["cpu_unsampled_percent"]), pytest.approx(found["cpu_percent"])) == (0.0, 60.0)
    # It has no peak, and is not split into user and system time.
    assert isinstance(roles["database"]["cpu_user_percent"], Missing)
    assert roles["master"]["cpu_user_percent"] == 10.0


def test_in_a_part_of_several_roles_it_is_the_one_that_had_several_processes():
    workers = (process(7, 2, born=5), process(2, 2, role="database"))
    roles, found = roles_at(*workers, server=6, postgresql=2)
    assert cpu_of(roles) == {"database": (20.0, 0.0), "master": (10.0, 0.0), "worker": (50.0, 0.0)}
    assert (pytest.approx(found["cpu_unsampled_percent"]), pytest.approx(found["cpu_percent"])) == (0.0, 80.0)


def test_what_may_be_of_two_roles_is_left_and_bounds_both():
    helpers = (process(7, 2, born=5), process(8, 1, born=6, role="helper"), process(2, 2, role="database"))
    roles, found = roles_at(*helpers, server=8, postgresql=2)
    assert cpu_of(roles) == {
        "database": (20.0, 0.0),
        "helper": (10.0, 40.0),
        "master": (10.0, 0.0),
        "worker": (20.0, 40.0),
    }
    assert (pytest.approx(found["cpu_unsampled_percent"]), pytest.approx(found["cpu_percent"])) == (
        40.0,
        100.0,
    )


@pytest.mark.parametrize("parts", [{"server": 6}, {"server": 1, "postgresql": 2, "frontend": 3}])
def test_what_no_part_or_one_without_a_role_used_may_be_anyones(parts):
    roles, found = roles_at(process(2, 2, role="database"), **parts)
    assert cpu_of(roles) == {"database": (20.0, 30.0), "master": (10.0, 30.0)}
    assert (pytest.approx(found["cpu_unsampled_percent"]), pytest.approx(found["cpu_percent"])) == (
        30.0,
        60.0,
    )


def test_without_control_groups_parts_are_known_by_the_children_that_they_waited_for():
    samples = (
        sample(0, process(1, 0, role="master"), process(2, 0, role="database")),
        sample(10, process(1, 1, role="master"), process(2, 2, role="database")),
    )
    counters = {"subject.cpu_ns": 7, "subject.server.cpu_ns": 1, "subject.postgresql.cpu_ns": 5}
    trial = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, samples=samples)
    counted = replace(trial, counters={name: value * SECOND for name, value in counters.items()})
    # One second belongs to what has left both trees.
    assert cpu_of(role_metrics(counted)) == {"database": (50.0, 10.0), "master": (10.0, 10.0)}
    assert trial_metrics(counted)["cpu_unsampled_percent"] == pytest.approx(10.0)
    in_all = replace(trial, counters={"subject.cpu_ns": 7 * SECOND})
    assert cpu_of(role_metrics(in_all)) == {"database": (20.0, 40.0), "master": (10.0, 40.0)}


def test_samples_that_show_all_leave_nothing():
    samples = (sample(0, process(1, 0)), sample(10, process(1, 7)))
    trial = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, samples=samples)
    assert trial_metrics(trial)["cpu_unsampled_percent"] == 0.0
    fewer = replace(trial, counters={"subject.cpu_ns": 6 * SECOND})
    assert trial_metrics(fewer)["cpu_unsampled_percent"] == 0.0


def test_what_no_sample_shows_is_not_known_without_samples():
    trial = Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, counters={"subject.cpu_ns": SECOND})
    assert isinstance(trial_metrics(trial)["cpu_unsampled_percent"], Missing)


def test_a_pid_that_is_used_again_is_another_process():
    samples = [sample(0, process(1, 50)), sample(5, process(1, 51)), sample(10, process(1, 3, born=9))]
    assert cpu_share(samples) == 0.4


def test_one_sample_gives_no_cpu_and_says_why():
    assert isinstance(cpu_share([sample(0, process(1, 1))]), Missing)


def test_memory_is_the_largest_sum_within_the_window():
    samples = (
        sample(0, process(1, 0, rss=900), phase=Phase.WARMUP),
        sample(1, process(1, 0, rss=10), process(2, 0, rss=20)),
        sample(2, process(1, 0, rss=15)),
        sample(3, process(1, 0, rss=800), phase=Phase.DRAIN),
    )
    found = memory_metrics(samples)
    assert (found["rss_peak"], found["vsz_peak"], found["processes_max"]) == (30, 60, 2)


def test_pss_is_read_at_the_mark_and_missing_if_any_process_has_none():
    whole = (
        sample(0, process(1, 0)),
        sample(1, process(1, 0, pss=7), process(2, 0, pss=5), phase=Phase.DRAIN),
    )
    assert memory_metrics(whole)["pss_end"] == 12
    partly = (*whole, sample(2, process(1, 0, pss=7), process(2, 0), phase=Phase.DRAIN))
    assert memory_metrics(partly)["pss_end"] == Missing("could not be read for 1 of 2 processes")


def test_a_process_that_ended_before_its_memory_was_read_has_none():
    mark = sample(1, process(1, 0, pss=7), process(2, 0))
    gone = sample(2, process(1, 0, rss=9), phase=Phase.DRAIN)
    dead = sample(2, process(1, 0, rss=9), process(2, 0, rss=0), phase=Phase.DRAIN)
    still = sample(2, process(1, 0, rss=9), process(2, 0, rss=9), phase=Phase.DRAIN)
    assert memory_metrics((mark, gone))["pss_end"] == memory_metrics((mark, dead))["pss_end"] == 7
    assert memory_metrics((mark, still))["pss_end"] == Missing("could not be read for 1 of 2 processes")


def test_what_a_process_holds_is_the_mean_of_its_role_at_the_mark():
    samples = (
        sample(0, process(1, 0, rss=900)),
        sample(
            1,
            process(1, 0, role="master", rss=50, pss=40),
            process(2, 0, rss=10, pss=4),
            process(3, 0, rss=20, pss=8),
            phase=Phase.DRAIN,
        ),
    )
    worker, every = memory_metrics(samples, "worker"), memory_metrics(samples)
    names = ("rss_per_process", "pss_per_process", "vsz_per_process")
    assert [worker[name] for name in names] == [15, 6, 30]
    assert every["rss_per_process"] == 80 / 3
    assert memory_metrics(samples, "frontend")["rss_per_process"] == Missing(
        "no process at the end of the load"
    )


def test_a_role_has_its_own_figures():
    samples = (
        sample(0, process(1, 0, role="master"), process(2, 0)),
        sample(10, process(1, 1, role="master"), process(2, 9)),
    )
    assert process_metrics(samples, "master")["cpu_percent"] == 10
    assert [process_metrics(samples, role)["processes_max"] for role in ("master", "worker", None)] == [
        1,
        1,
        2,
    ]
    assert process_metrics(samples)["cpu_percent"] == 100


def test_stolen_time_is_a_share_of_all_cpus():
    found = machine_metrics((sample(0), sample(10, busy_s=5, steal_s=1)))
    # Two CPUs in 10 s: 5 s busy, 1 s stolen.
    assert (found["machine_cpu_percent"], found["machine_steal_percent"]) == (50, 5)
    assert found["machine_cpu_ratio"] == pytest.approx(0.25)


def test_the_machines_memory_in_use_is_what_programs_could_not_get():
    def at(available):
        return {"memory_bytes": 1000, "memory_available_bytes": available}

    samples = (replace(sample(0), gauges=at(500)), replace(sample(10), gauges=at(300)))
    assert machine_metrics(samples)["machine_memory_ratio"] == pytest.approx(0.6)
    unknown = machine_metrics((sample(0), sample(10)))["machine_memory_ratio"]
    assert unknown == Missing("no sample has the machine's memory")


def test_time_in_the_kernel_is_told_from_that_of_the_program():
    def at(user_s, system_s):
        return replace(process(1, user_s), system_ns=round(system_s * SECOND))

    found = process_metrics((sample(0, at(1, 1)), sample(10, at(4, 2))))
    names = ("cpu_user_percent", "cpu_system_percent", "cpu_percent")
    assert [found[name] for name in names] == [30, 10, 40]


def marked(one, voluntary, involuntary, peak=None, descriptors=None):
    counts = {"voluntary_switches": voluntary, "involuntary_switches": involuntary}
    return replace(one, **counts, rss_peak_bytes=peak, descriptors=descriptors)


def test_switches_are_counted_between_the_marks():
    samples = (
        sample(0, marked(process(1, 0), 100, 10)),
        sample(5, process(1, 0)),
        sample(10, marked(process(1, 0), 300, 15), marked(process(2, 0, role="master"), 50, 5)),
    )
    found = process_metrics(samples)
    assert (found["voluntary_switches_per_s"], found["involuntary_switches_per_s"]) == (25, 1)
    assert process_metrics(samples, "worker")["voluntary_switches_per_s"] == 20


def test_switches_that_were_not_counted_at_both_edges_have_a_reason():
    samples = (sample(0, process(1, 0)), sample(10, marked(process(1, 0), 1, 1)))
    assert isinstance(process_metrics(samples)["voluntary_switches_per_s"], Missing)


def test_peaks_and_descriptors_are_those_at_the_end_of_the_load():
    worker = marked(process(1, 0, pss=5), 1, 1, peak=40, descriptors=7)
    master = marked(process(2, 0, role="master", pss=5), 1, 1, peak=2, descriptors=3)
    samples = (sample(0, marked(process(1, 0), 1, 1, peak=900, descriptors=900)), sample(10, worker, master))
    found = process_metrics(samples)
    assert (found["rss_high_water"], found["descriptors_end"]) == (42, 10)
    assert process_metrics(samples, "master")["rss_high_water"] == 2


def test_what_came_and_went_is_told_by_role():
    samples = (
        sample(0, process(1, 0, role="master"), process(2, 0)),
        sample(10, process(1, 0, role="master"), process(3, 0, born=5)),
    )
    counts = {
        role: process_metrics(samples, role)["processes_started"] for role in ("master", "worker", None)
    }
    assert counts == {"master": 0, "worker": 1, None: 1}

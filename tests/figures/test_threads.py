"""How CPU time was spread over threads."""

import pytest

from prony.figures.missing import Missing
from prony.figures.resources import busiest_process, thread_metrics
from prony.model.observation import Phase, ProcessRow, Sample, ThreadUsage
from prony.model.trial import Ok, Trial, TrialRole

SECOND = 1_000_000_000


def row(pid, role, marked=True):
    return ProcessRow(pid, 1, role, "server", 0, 0, 0, 0, 1, voluntary_switches=1 if marked else None)


def trial(*threads, marked=True):
    rows = (row(1, "master", marked), row(2, "worker", marked))
    samples = tuple(Sample(second * SECOND, Phase.WINDOW, rows, 0, 0, 0) for second in (0, 10))
    usage = tuple(ThreadUsage(pid, tid, "loop", round(used_s * SECOND)) for pid, tid, used_s in threads)
    return Trial(1, 0, 0, 0, TrialRole.SUBJECT, Ok(), 0, 0, samples=samples, threads=usage)


def test_the_busiest_threads_share_is_of_the_window():
    found = trial((1, 1, 0.5), (2, 2, 3.0), (2, 3, 6.0))
    assert thread_metrics(found) == {"busiest_thread_percent": 60}
    assert thread_metrics(found, "master") == {"busiest_thread_percent": 5}


def test_the_busiest_process_has_its_threads_in_order():
    found = busiest_process(trial((1, 1, 9.0), (2, 2, 4.0), (2, 3, 6.0)))
    assert (found.pid, found.threads, found.cores) == (2, (0.6, 0.4), pytest.approx(1.0))


def test_threads_that_were_read_and_idle_are_zero_and_unread_ones_missing():
    assert thread_metrics(trial()) == {"busiest_thread_percent": 0}
    assert isinstance(thread_metrics(trial(marked=False))["busiest_thread_percent"], Missing)
    assert busiest_process(trial()) is None

"""Who came and who went while the window was open."""

from prony.figures.missing import Missing
from prony.figures.resources import Turnover, turnover, turnover_metrics
from prony.model.observation import Phase, ProcessRow, Sample


def process(pid, born=1, role="worker"):
    return ProcessRow(pid, born, role, "server", 0, 0, 0, 0, 1)


def window(*moments):
    return [Sample(second, Phase.WINDOW, moment, 0, 0, 0) for second, moment in enumerate(moments)]


def test_a_worker_that_was_replaced_is_a_restart_and_one_that_was_added_is_not():
    samples = window(
        (process(1), process(2)),
        (process(1), process(2)),
        (process(1), process(3)),
        (process(1), process(3)),
        (process(1), process(4), process(5)),
    )
    assert turnover(samples) == {"worker": Turnover(started=3, ended=2, restarts=2, lasting=1)}
    assert turnover(window((process(1),), (process(1), process(2))))["worker"].restarts == 0


def test_a_number_that_is_used_again_is_another_process():
    again = process(1, born=9)
    assert turnover(window((process(1),), (again,), (again,))) == {
        "worker": Turnover(1, 1, restarts=1, lasting=1)
    }


def test_a_worker_that_ended_and_was_not_replaced_is_lost():
    samples = window((process(1), process(2)), (process(1), process(2)), (process(1),))
    assert turnover(samples) == {"worker": Turnover(0, 1, lost=1)}


def test_a_process_for_each_request_is_no_restart():
    samples = window(*((process(1), process(10 + at)) for at in range(5)))
    assert turnover(samples) == {"worker": Turnover(started=4, ended=4)}


def test_processes_of_different_roles_do_not_replace_each_other():
    samples = window((process(1),), (process(2, role="helper"),))
    assert turnover_metrics(samples) == {"processes_started": 1, "processes_ended": 1, "restarts": 0}
    assert turnover_metrics(samples, "worker") == {
        "processes_started": 0,
        "processes_ended": 1,
        "restarts": 0,
    }


def test_a_worker_that_is_renamed_is_the_same():
    assert turnover_metrics(window((process(1, role="server"),), (process(1),)))["restarts"] == 0


def test_one_sample_tells_nothing():
    assert all(isinstance(value, Missing) for value in turnover_metrics(window((process(1),))).values())

"""`prony run --requests-from` and `--data`: the plan has the requests, and each generator the open file."""

import os

import pytest

OWN = ("--app", "shop:app", "--servers", "gunicorn,waitress", "--net", "host")


@pytest.fixture
def measure(run, folder):
    def command(text, *options):
        (folder / "list").write_text(text)
        return run(*OWN, *options)

    command.study = run
    return command


def test_each_load_of_the_plan_has_the_requests_of_the_file(measure):
    done = measure("path,weight\n/a,3\n/b,1\n", "--requests-from", "list", "-c", "1,2")
    task = measure.study.task
    assert task is not None, done
    loads = [cell.workload for cell in task.plan.cells]
    assert len(loads) == 4
    for load in loads:
        assert [(one.path, one.weight) for one in load.mix.paths] == [("/a", 3), ("/b", 1)]
        assert (load.mix.file.name, load.mix.file.requests, load.request.path) == ("list", 2, "/a")
        assert load.mix.file.sha256 in task.requests


def test_data_fills_the_template_of_the_path(measure):
    measure("id\n7\n", "--data", "list", "--path", "/i/{{id}}", "--order", "shuffled")
    task = measure.study.task
    load = task.plan.cells[0].workload
    assert (load.request.path, load.mix.paths[0].path) == ("/i/7", "/i/{{id}}")
    assert load.mix.file.order == "shuffled"
    # Nobody has it open when the command has ended.
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(next(iter(task.requests.values())))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--order", "once"), "`--order once` only works with `prony load`"),
        (("--engine", "wrk"), "`wrk` sends no requests from a file"),
        (("--target", "me@server"), "`--target` does not work with requests from a file yet"),
    ],
)
def test_what_does_not_go_together_is_refused(measure, options, why):
    done = measure("/a\n", "--requests-from", "list", *options)
    assert (done.status, measure.study.task) == (2, None)
    assert why in " ".join(done.err.split()), done.err

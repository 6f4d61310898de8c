"""`prony run --requests-from` and `--data`: the plan has the requests, and each generator the open file."""

import os

import pytest

from prony.archive import open_archive

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


STUDY = """\
name = "shop"
title = "Shop"
[[subjects]]
server = "gunicorn"
app = "flask-hello"
[[workloads]]
loop = "closed"
connections = 2
{keys}
[profiles.quick]
blocks = 1
duration = "1s"
"""


@pytest.fixture
def of_file(run, folder):
    def command(keys, *options, lines="/a\n/b\n"):
        (folder / "studies").mkdir(exist_ok=True)
        (folder / "studies" / "list").write_text(lines)
        (folder / "studies" / "shop.toml").write_text(STUDY.format(keys=keys))
        return run("studies/shop.toml", "--net", "host", "--out", "shop.prony", *options)

    command.study = run
    return command


def test_a_study_names_its_requests_from_its_own_folder(of_file, folder):
    of_file('requests_from = "list"\norder = "shuffled"')
    task = of_file.study.task
    load = task.plan.cells[0].workload
    assert [one.path for one in load.mix.paths] == ["/a", "/b"]
    assert (load.mix.file.name, load.mix.file.order, load.expect_body) == ("list", "shuffled", None)
    assert load.mix.file.sha256 in task.requests
    with open_archive(folder / "shop.prony") as archive:
        assert archive.plan().cells[0].workload.mix == load.mix


def test_data_of_a_study_fills_paths_and_headers(of_file):
    keys = 'data = "list"\npath = "/i/{{id}}"\nheaders = { X-User = "{{user}}" }'
    of_file(keys, lines="id,user\n7,ann\n")
    load = of_file.study.task.plan.cells[0].workload
    assert (load.request.path, load.mix.paths[0].path) == ("/i/7", "/i/{{id}}")
    assert ("X-User", "ann") in load.request.headers


def test_a_study_goes_on_only_with_the_same_requests(of_file):
    of_file('requests_from = "list"')
    of_file('requests_from = "list"')
    assert of_file.study.task.resumes
    of_file.study.task = None
    done = of_file('requests_from = "list"', lines="/a\n/c\n")
    assert (done.status, of_file.study.task) == (2, None)
    assert "holds another study" in " ".join(done.err.split()), done.err


@pytest.mark.parametrize(
    ("keys", "options", "why"),
    [
        ('order = "shuffled"', (), "`order` only works with `requests_from` or `data`"),
        ('requests_from = "list"\npath = "/x"', (), "`requests_from` and `path` exclude each other"),
        ('requests_from = "list"\ndata = "list"', (), "`requests_from` and `data` exclude each other"),
        ('requests_from = "list"\norder = "once"', (), "order"),
        ('requests_from = "list"\nengines = "wrk"', (), "`wrk` sends no requests from a file"),
        ('requests_from = "none"', (), "cannot read `studies/none`"),
        ('data = "list"\norder = "weighted"', (), "rows of data are equal"),
        ('data = "list"', (), "fills no template"),
        (
            "connection_requests = 9\nkeep_alive = false",
            (),
            "`connection_requests` needs connections that are kept",
        ),
        ('requests_from = "list"', ("--requests-from", "studies/list"), "have requests already"),
        ('requests_from = "list"', ("--fleet", "local:2"), "`local:2` sends no requests from a file"),
    ],
)
def test_keys_of_a_study_that_do_not_go_together_are_refused(of_file, keys, options, why):
    done = of_file(keys, *options)
    assert (done.status, of_file.study.task) == (2, None)
    assert why in " ".join(done.err.split()), done.err


def test_a_load_of_a_study_ends_its_connections(of_file):
    of_file('connection_requests = 100\nconnection_age = "10s"')
    (load,) = {cell.workload for cell in of_file.study.task.plan.cells}
    assert (load.connection_requests, load.connection_age_ns) == (100, 10_000_000_000)

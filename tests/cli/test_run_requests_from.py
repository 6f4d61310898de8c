"""What users ask for in a study, by options of `prony run` and by keys: requests of files, forms, groups."""

import base64
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


def test_a_pipe_of_the_shell_is_read_once_for_all_loads(run, folder):
    reader, writer = os.pipe()
    os.write(writer, b"/a\n/b\n")
    os.close(writer)
    done = run(*OWN, "-c", "1,2", "--requests-from", f"/dev/fd/{reader}")
    os.close(reader)
    assert run.task is not None, done
    assert {cell.workload.mix.file.requests for cell in run.task.plan.cells} == {2}


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


def test_no_value_of_a_row_is_in_the_archive_and_a_study_goes_on_with_it(of_file, folder):
    keys = 'data = "list"\npath = "/i/{{id}}"\nheaders = { X-User = "{{user}}" }\nbody = "{{user}}"'
    for _ in range(2):
        of_file(keys, lines="id,user\n4711,s3cret\n")
    assert of_file.study.task.resumes
    kept = (folder / "shop.prony").read_bytes()
    assert not any(value in kept for value in (b"4711", b"s3cret", base64.b64encode(b"s3cret")))


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
        ('form = ["a=1"]\nbody = "x"', (), "`form` and `body` exclude each other"),
        ('body = "@none.json"', (), "cannot read `studies/none.json`"),
        ("follow = 101", (), "expected"),
        ('expect_status = "20"', (), "expected statuses such as"),
        ('groups = [{ name = "a" }]', (), "expected"),
        ('groups = [{ name = "a" }, { name = "a" }]', (), "two are called `a`"),
        ('groups = [{ name = "a" }, { name = "b" }]\nengines = "wrk"', (), "knows no groups of users"),
        ('groups = [{ name = "a" }, { name = "b" }]', ("--fleet", "local:2"), "knows no groups of users"),
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


REGIONS = """\
[[groups]]
name = "near"
share = 3
headers = { X-Region = "near" }

[[groups]]
name = "far"
delay = "80ms"
source = "127.0.0.9"
"""


def _loads(study):
    return {cell.workload for cell in study.task.plan.cells}


def test_typed_users_and_limits_are_those_of_each_load(measure, folder):
    (folder / "regions.toml").write_text(REGIONS)
    limits = ("--requests-per-connection", "100", "--connection-age", "10s")
    measure("", "--groups", "regions.toml", *limits)
    (load,) = _loads(measure.study)
    near, far = load.groups
    assert (near.name, near.weight, near.headers) == ("near", 3.0, (("X-Region", "near"),))
    assert (far.delay_ns, far.source) == (80_000_000, "127.0.0.9")
    assert (load.connection_requests, load.connection_age_ns) == (100, 10_000_000_000)
    # Each group has a thread, and these do not spin for one another's CPU.
    assert {cell.engine.pacing for cell in measure.study.task.plan.cells} == {"economical"}


def test_redirects_are_followed_to_a_success(measure):
    measure("", "--follow", "3")
    (load,) = _loads(measure.study)
    assert (load.follow, load.expect_statuses) == (3, ((200, 299),))


def test_a_status_that_is_typed_is_what_redirects_end_with(measure):
    measure("", "--follow", "3", "--expect-status", "404")
    (load,) = _loads(measure.study)
    assert (load.follow, load.expect_status, load.expect_statuses) == (3, 404, ())


def test_redirects_are_followed_of_groups_and_of_requests_from_a_file(measure, of_file):
    measure(REGIONS, "--groups", "list", "--follow", "3")
    (load,) = _loads(measure.study)
    assert (load.follow, len(load.groups), load.expect_statuses) == (3, 2, ((200, 299),))
    of_file('requests_from = "list"\nfollow = 3\ngroups = [{ name = "a" }, { name = "b" }]')
    (load,) = _loads(of_file.study)
    assert (load.follow, load.mix.file.requests, len(load.groups)) == (3, 2, 2)


def test_a_form_is_posted_over_connections_of_its_own(measure, folder):
    (folder / "cat").write_bytes(b"meow")
    measure("", "--form", "title=Cats", "--form", "photo=@cat", "--no-keepalive")
    (load,) = _loads(measure.study)
    assert (load.request.method, load.request.keep_alive) == ("POST", False)
    assert b"Cats" in load.request.body
    assert b"meow" in load.request.body


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--groups", "none.toml"), "none.toml: cannot be read"),
        (("--groups", "list", "--target", "me@server"), "`--groups` does not work with `--target`"),
        (("--groups", "list", "--pacing", "precise", "--rate", "9"), "`--pacing precise` does not work"),
        (("--no-keepalive", "--connection-age", "1s"), "a connection for each request has no other limit"),
        (("--form", "a=1", "--body", "x"), "`--form` and `--body` exclude each other"),
    ],
)
def test_typed_users_that_do_not_go_together_are_refused(measure, options, why):
    done = measure(REGIONS, *options)
    assert (done.status, measure.study.task) == (2, None)
    assert why in " ".join(done.err.split()), done.err


def test_a_study_says_its_request_in_keys(of_file, folder):
    of_file('method = "put"\nbody = "@list"\npath = "/x"\nexpect_status = "201,3xx"', lines="hello")
    (load,) = _loads(of_file.study)
    assert (load.request.method, load.request.path, load.request.body) == ("PUT", "/x", b"hello")
    assert (load.expect_statuses, load.expect_body) == (((201, 201), (300, 399)), None)


def test_a_study_posts_a_form_whose_file_lies_beside_it(of_file):
    of_file('form = ["title=Cats", "photo=@list"]\nfollow = 2', lines="meow")
    (load,) = _loads(of_file.study)
    assert (load.request.method, load.follow, load.expect_statuses) == ("POST", 2, ((200, 299),))
    assert b"meow" in load.request.body
    assert dict(load.request.headers)["Content-Type"].startswith("multipart/form-data; boundary=")


def test_a_body_of_a_study_may_be_a_template(of_file):
    keys = (
        'data = "list"\nbody = "id={{id}}"\nheaders = { Content-Type = "application/x-www-form-urlencoded" }'
    )
    of_file(keys, lines="id\na b\n")
    (load,) = _loads(of_file.study)
    assert (load.request.method, load.request.body) == ("POST", b"id=a+b")


def test_a_method_of_a_study_is_not_the_one_of_its_apps_contract(of_file):
    of_file('method = "HEAD"')
    (load,) = _loads(of_file.study)
    assert (load.request.method, load.expect_status, load.expect_body) == ("HEAD", None, None)


def test_users_of_a_study_are_groups_of_its_load(of_file):
    of_file('groups = [{ name = "near", share = 3 }, { name = "far", delay = "80ms" }]')
    (load,) = _loads(of_file.study)
    assert [(one.name, one.weight, one.delay_ns) for one in load.groups] == [
        ("near", 3, 0),
        ("far", 1, 80_000_000),
    ]

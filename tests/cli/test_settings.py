"""`--set` with several values: the grid that it makes, and what is refused before anything is built."""

import json

import pytest

OWN = ("--app", "shop:app", "--servers", "gunicorn", "--sandbox", "process")
APP = "def app(environ, start_response): ...\n"
STUDY = """\
format = 1
name = "kernels"
title = "Settings of the kernel"

[kernels.article]
"net.core.somaxconn" = 128

[[subjects]]
server = "waitress"
app = "hello"
settings.threads = [2, 4]
sandbox.kernel = ["as-found", "article"]

[[workloads]]
loop = "closed"
connections = 10

[profiles.quick]
blocks = 2
duration = "1s"
"""


@pytest.fixture(autouse=True)
def shop(folder):
    (folder / "shop.py").write_text(APP)


def planned(run, *arguments):
    """Return what a command measures: the name, settings and sandbox of each subject."""
    done = run(*arguments)
    assert run.task is not None, done.err
    return {cell.subject.name: (dict(cell.subject.settings), cell.sandbox) for cell in run.task.plan.cells}


def test_several_values_of_two_settings_are_measured_in_all_combinations(run):
    found = planned(run, *OWN, "--set", "gunicorn.workers=1,2", "--set", "gunicorn.threads=1,8")
    assert {name: settings for name, (settings, _) in found.items()} == {
        f"gunicorn[workers={workers} threads={threads}]+shop": {"workers": workers, "threads": threads}
        for workers in (1, 2)
        for threads in (1, 8)
    }


def test_a_setting_that_varies_may_be_called_so(run):
    found = planned(run, *OWN, "--vary", "gunicorn.workers=1,2", "--set", "gunicorn.threads=8")
    assert list(found) == ["gunicorn[workers=1]+shop", "gunicorn[workers=2]+shop"]


BOTH = ("--app", "shop:app", "--servers", "gunicorn,gunicorn@nginx", "--sandbox", "process")


def test_everything_is_served_over_tls(run):
    found = planned(run, *BOTH, "--tls")
    assert {name: settings for name, (settings, _) in found.items()} == {
        "gunicorn+shop": {"tls": "ecdsa"},
        "gunicorn@nginx+shop": {},
    }
    fronts = [cell.subject.frontend for cell in run.task.plan.cells if cell.subject.frontend]
    assert [dict(front.settings) for front in fronts] == [{"tls": "ecdsa"}]


def test_everything_is_served_with_tls_and_without(run):
    assert list(planned(run, *BOTH, "--tls-cost")) == [
        *("gunicorn[tls=off]+shop", "gunicorn[tls=ecdsa]+shop"),
        *("gunicorn@nginx[tls=off]+shop", "gunicorn@nginx[tls=ecdsa]+shop"),
    ]


def test_a_server_without_tls_is_named_and_so_are_options_that_exclude_each_other(run):
    done = run("--app", "shop:app", "--servers", "gunicorn,waitress", "--tls")
    assert done.status == 2
    assert "the catalogue knows no TLS of `waitress`" in done.err
    assert "exclude each other" in run(*OWN, "--tls", "--tls-cost").err


def test_the_number_of_trials_and_the_time_are_said_before(said):
    done = said(
        "run", *OWN, "--set", "gunicorn.workers=1,2,4", "--dry-run", "--no-calibration", "--pilot", "0s"
    )
    assert "settings of gunicorn+shop: workers 1, 2, 4: 3 subjects" in done.out
    assert "15 trials, about 4 min" in done.out


def test_values_that_are_the_same_with_these_cpus_are_measured_once(run, monkeypatch):
    monkeypatch.setattr("prony.cli.run.cpus_of", lambda plan: {one.name: 2 for one in plan.subjects()})
    found = planned(run, *OWN, "--set", "gunicorn.workers=2,{cpus},2*{cpus}+1")
    assert list(found) == ["gunicorn[workers=2]+shop", "gunicorn[workers=2*{cpus}+1]+shop"]


def test_settings_of_the_kernel_are_those_of_each_subject(run):
    sysctl = "sandbox.sysctl.net.ipv4.ip_local_port_range"
    found = planned(run, *OWN, "--net", "isolated", "--set", f"{sysctl}=1024 65535,32768 60999")
    assert {name: sandbox.sysctl for name, (_, sandbox) in found.items()} == {
        f"gunicorn[ip_local_port_range={low}-{high}]+shop": (
            ("net.ipv4.ip_local_port_range", f"{low}\t{high}"),
        )
        for low, high in ((1024, 65535), (32768, 60999))
    }


def test_a_variable_of_the_app_is_each_subjects_own(run):
    typed = (*OWN, "--set", "env.POOL=4,16", "--out", "out.prony")
    planned(run, *typed)
    apps = {cell.subject.name: dict(cell.subject.app.environment) for cell in run.task.plan.cells}
    assert apps == {"gunicorn[POOL=4]+shop": {"POOL": "4"}, "gunicorn[POOL=16]+shop": {"POOL": "16"}}
    planned(run, *typed)
    assert run.task.resumes


def test_a_study_of_settings_goes_on_with_the_same_subjects(run, folder):
    (folder / "kernels.toml").write_text(STUDY)
    typed = ("kernels.toml", "--sandbox", "process", "--out", "out.prony")
    began = planned(run, *typed)
    assert len(began) == 4
    assert planned(run, *typed) == began
    assert run.task.resumes


@pytest.mark.parametrize(
    ("typed", "said_of_it"),
    [
        (["gunicorn.wokers=1,2"], "`--set gunicorn.wokers=1`: expected one of the settings"),
        (["gunicorn.workers=1,many"], "`--set gunicorn.workers=many`: expected a whole number"),
        (["gunicorn.workers=0,1"], "`--set gunicorn.workers=0`: expected a whole number from 1"),
        (["gunicorn.workers=2,4,2"], "`2` is there twice; expected each value once"),
        (["gunicorn.workers=2,,4"], "a value is missing; expected values with commas"),
        (["gunicorn.workers=2", "gunicorn.workers=4"], "`gunicorn.workers` is set twice"),
        (["waitress.threads=2,4"], "no subject runs `waitress`; the servers are gunicorn"),
        (["sandbox.memory=512M"], "expected `--memory 512M`"),
        (["sandbox.memory=1k,2k"], "expected at least `1M`"),
        (["sandbox.memory=1024M,1G"], "two of the limits are the same"),
        (["sandbox.cpus=0.5,x"], "found `x`; expected a number from 0.01"),
        (["env.POOL=4"], "expected `--env POOL=4`"),
        (["env.A-B=4,5"], "`A-B` is no variable's name"),
        (["sandbox.swap=1,2"], "expected one of `sandbox.cpus`, `sandbox.memory`"),
        (["sandbox.sysctl.vm.swappiness=1,2"], "found `vm.swappiness` = `1`; expected a setting that each"),
        (["sandbox.sysctl.net.core.somaxconn=1,x;y"], "expected a whole number, two or three of them"),
        (["sandbox.sysctl.net.core.somaxconn=1,2"], "it would be set for the whole machine"),
        (["sandbox.memory=1G,2G"], "the sandbox `process` cannot enforce limits"),
        (
            ["gunicorn.workers=" + ",".join(map(str, range(1, 66)))],
            "make 65 subjects; expected at most 64",
        ),
    ],
)
def test_what_makes_no_grid_is_refused_in_one_line(said, typed, said_of_it):
    done = said("run", *OWN, *(word for one in typed for word in ("--set", one)))
    assert (done.status, done.out) == (2, "")
    assert said_of_it in done.err.partition("\n")[0]


def test_what_a_file_cannot_ask_for_is_refused_with_its_line(said, folder):
    wrong = STUDY.replace("[2, 4]", "[2, 2]").replace('"article"]', '"other"]')
    (folder / "kernels.toml").write_text(wrong)
    done = said("run", "kernels.toml")
    assert "kernels.toml:11 subjects.0.settings.threads: " in done.err
    (folder / "kernels.toml").write_text(STUDY.replace('"article"]', '"other"]'))
    assert "expected one of `as-found`, `article`" in said("run", "kernels.toml").err
    (folder / "kernels.toml").write_text(STUDY.replace("net.core.somaxconn", "vm.swappiness"))
    assert "found `vm.swappiness = 128`; expected a setting that each" in said("run", "kernels.toml").err


def test_a_file_of_a_server_takes_one_value_of_a_setting(said):
    done = said("servers", "nginx", "--file", "nginx.conf", "--set", "nginx.workers=1,2")
    assert (done.status, "expected one value here" in done.err) == (2, True)


def test_the_studies_page_shows_the_subjects_that_settings_make(said, folder):
    (folder / "kernels.toml").write_text(STUDY)
    (found,) = json.loads(said("studies", "kernels.toml", "--json").out)
    assert "waitress[threads=2 kernel=as-found]+hello" in json.dumps(found)

"""A study with environments, sandbox and engine made of paper: blocks, archive, notices, interruptions."""

from collections import Counter
from dataclasses import replace

import pytest

from prony.catalog.schema.loader import load_catalog, with_app
from prony.core.errors import ArchiveError, HostError, SubjectError
from prony.machine.claim import claim_machine
from prony.model.subject import Interface
from prony.model.trial import Failed, Ok, RunStatus
from prony.plan.order import block_order
from prony.sandbox.exchange import Reply

# --- blocks -----------------------------------------------------------------------------------------------


def test_every_cell_is_measured_in_every_block_in_the_seeded_order(world):
    study = world.run()
    trials, _, run = world.archive()
    expected = [(block, cell.id) for block in range(3) for cell in block_order(study.plan, block)]
    assert [(trial.block, trial.cell_id) for trial in trials] == expected
    assert [trial.position for trial in trials] == [0, 1, 2, 3] * 3
    assert {trial.outcome for trial in trials} == {Ok()}
    assert run.status is RunStatus.FINISHED


def test_the_listener_hears_of_every_trial_when_it_is_archived(world):
    world.run()
    trials, _, _ = world.archive()
    order = [(trial.block, trial.cell_id) for trial in trials]
    assert world.listener.of("planned") == [12]
    assert world.listener.of("started") == world.listener.of("ended") == order


def test_each_trial_has_a_fresh_server_in_a_folder_of_its_own(world):
    world.run()
    folders = [name for name, _ in world.happened("start")]
    assert len(set(folders)) == len(folders) == 12
    steps = [what for what, *_ in world.log]
    assert steps == ["start", "load", "stop"] * 12


def test_nuisances_reach_the_server_and_the_archive(world):
    world.run()
    trials, _, _ = world.archive()
    for trial, (_, launch) in zip(trials, world.happened("start"), strict=True):
        assert launch.environment["PYTHONHASHSEED"] == trial.nuisances["hash_seed"]
        assert len(launch.environment["PRONY_PADDING"]) == int(trial.nuisances["padding_bytes"])
    assert len({trial.nuisances["hash_seed"] for trial in trials}) == 12


def test_nothing_of_a_run_is_left_in_the_cache(world):
    world.run()
    assert not list((world.folder / "cache" / "run").iterdir())


# --- subjects ---------------------------------------------------------------------------------------------


def test_a_subject_is_archived_as_it_was_resolved(world):
    world.run()
    _, subjects, _ = world.archive()
    waitress = subjects["waitress+hello"]
    assert (waitress.server_version, waitress.interpreter, waitress.lock_digest) == ("1.0", "CPython", "d")
    assert waitress.settings["threads"] == 4
    assert waitress.command_line is not None
    assert "waitress-serve" in waitress.command_line
    assert subjects["wsgiref+hello"].server_version == "1.0"


def test_an_unavailable_subject_is_told_archived_and_passed_over(world):
    world.unavailable = {"waitress": "no such version"}
    world.run()
    trials, subjects, run = world.archive()
    assert len(trials) == 6
    assert world.listener.of("planned") == [6]
    assert subjects["waitress+hello"].unavailable == "no such version"
    assert "waitress+hello is unavailable: no such version" in world.listener.notices
    assert run.status is RunStatus.FINISHED


def test_built_in_apps_share_the_environment_of_their_server(world):
    world.run(subjects=[{"server": "wsgiref", "app": ["hello", "flask-hello"]}])
    assert [request.key for request in world.requests] == ["wsgiref"]
    assert any("flask" in requirement for requirement in world.requests[0].app_requirements)


# --- a user's own app -------------------------------------------------------------------------------------


BOTH = [{"server": ["wsgiref", "waitress"], "app": "shop"}]


def is_waitress(launch):
    """A failure that only this server has."""
    if not any("waitress" in word for word in launch.command):
        return None
    return SubjectError("it ended", log="ModuleNotFoundError: No module named 'humanize'\nbye\n")


def own_app(world):
    from prony.catalog.schema.apps import user_app

    (world.folder / "shop.py").write_text("app = None\n")
    app = user_app("shop:app", world.folder, Interface.WSGI)
    return with_app(load_catalog(), app)


def test_a_users_app_has_an_environment_for_each_server(world):
    world.fail = "no"
    with pytest.raises(SubjectError):
        world.run(catalog=own_app(world), subjects=BOTH)
    assert [request.key for request in world.requests] == ["wsgiref for shop", "waitress for shop"]


def test_a_users_app_is_started_once_for_each_subject_before_the_first_block(world, monkeypatch):
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: Reply(200, b"hi"))
    world.fail = is_waitress
    world.run(catalog=own_app(world), subjects=BOTH)
    probes = [name for name, _ in world.happened("start") if name.startswith("probe-")]
    assert len(probes) == 2


def test_a_server_that_does_not_start_is_told_with_the_error_and_stays_in_the_study(world, monkeypatch):
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: Reply(200, b"hi"))
    world.fail = is_waitress
    world.run(catalog=own_app(world), subjects=BOTH)
    told = world.listener.notices
    place = told.index("waitress+shop does not start: it ended")
    assert told[place + 1] == "  ModuleNotFoundError: No module named 'humanize'"
    assert not any("--expect-status" in line for line in told)
    trials, _, run = world.archive()
    assert Counter(type(trial.outcome) for trial in trials) == {Ok: 6, Failed: 6}
    assert run.status is RunStatus.FINISHED


@pytest.mark.parametrize(
    ("errors", "asked"), [(("No module named 'humanize'",) * 3, 2), (("a", "b", "a"), 3)]
)
def test_after_two_servers_that_fail_by_one_error_the_others_are_not_asked(world, errors, asked):
    said = iter(errors)
    world.fail = lambda _launch: SubjectError("it ended", log=f"ModuleNotFoundError: {next(said)}\n")
    subjects = [{"server": ["wsgiref", "waitress", "gunicorn"], "app": "shop"}]
    with pytest.raises(SubjectError, match="no server starts") as stopped:
        world.run(catalog=own_app(world), subjects=subjects)
    assert len([name for name, _ in world.happened("start") if name.startswith("probe-")]) == asked
    assert ("not asked, as these fail alike: gunicorn+shop" in stopped.value.message) is (asked == 2)


def test_servers_of_another_interface_are_asked_though_the_first_two_fail_alike(world):
    world.fail = lambda _launch: SubjectError("it ended", log="ModuleNotFoundError: a\n")
    subjects = [
        {"server": ["wsgiref", "waitress"], "app": "shop", "interface": "wsgi"},
        {"server": ["uvicorn"], "app": "shop", "interface": "asgi"},
    ]
    from prony.catalog.schema.apps import user_app

    (world.folder / "shop.py").write_text("app = None\n")
    app = user_app("shop:app", world.folder, Interface.WSGI)
    app = replace(app, targets={**app.targets, Interface.ASGI: "shop:app"})
    with pytest.raises(SubjectError, match="no server starts") as stopped:
        world.run(catalog=with_app(load_catalog(), app), subjects=subjects)
    assert len([name for name, _ in world.happened("start") if name.startswith("probe-")]) == 3
    assert "not asked" not in stopped.value.message


PLAIN = {"content-type": "text/plain; charset=utf-8"}


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        (Reply(418, b"hi", PLAIN), "status 418, text/plain, 2 bytes: `hi`"),
        (Reply(200, b"hi", {"content-type": "text/html"}), "status 200, text/html, 2 bytes: `hi`"),
    ],
)
def test_servers_whose_replies_differ_in_status_or_media_type_stop_the_study(
    world, monkeypatch, other, shown
):
    one = Reply(200, b"hi", PLAIN)
    replies = iter([one, one, other, other])
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: next(replies))
    world.fail = is_waitress
    subjects = [{"server": ["wsgiref", "waitress", "gunicorn"], "app": "shop"}]
    with pytest.raises(SubjectError, match="answer the same request differently") as stopped:
        world.run(catalog=own_app(world), subjects=subjects)
    assert "  wsgiref+shop: status 200, text/plain, 2 bytes: `hi`" in stopped.value.message
    assert f"  gunicorn+shop: {shown}" in stopped.value.message
    assert "waitress" not in stopped.value.message
    assert not world.happened("load")


MIXED = [{"loop": "closed", "connections": 1, "paths": ["/", "/cart"]}]


def test_every_path_of_a_mix_is_asked_of_every_server_before_the_load(world, monkeypatch):
    asked = []

    def reply(check, *arguments):
        asked.append(check.request.path)
        return Reply(200, b"hi", PLAIN)

    monkeypatch.setattr("prony.study.replies.probe", reply)
    world.run(catalog=own_app(world), subjects=BOTH, workloads=MIXED)
    assert asked == ["/", "/", "/cart", "/cart"] * 2


def test_servers_that_differ_in_one_path_of_a_mix_stop_the_study(world, monkeypatch):
    replies = iter([Reply(200, b"hi", PLAIN)] * 6 + [Reply(500, b"oh", PLAIN)] * 2)
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: next(replies))
    with pytest.raises(SubjectError, match="answer the same request differently") as stopped:
        world.run(catalog=own_app(world), subjects=BOTH, workloads=MIXED)
    told = stopped.value.message
    assert "  waitress+shop:\n    GET /: status 200, text/plain, 2 bytes: `hi`\n" in told
    assert "    GET /cart: status 500, text/plain, 2 bytes: `oh`" in told
    assert not world.happened("load")


def test_bodies_of_a_path_that_differ_are_told_with_the_path(world, monkeypatch):
    replies = iter([Reply(200, b"hi")] * 6 + [Reply(200, b"another body")] * 2)
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: next(replies))
    world.run(catalog=own_app(world), subjects=BOTH, workloads=MIXED)
    (said,) = [line for line in world.listener.notices if "different bodies" in line]
    assert "answer to GET /cart with different bodies (2 and 12 bytes)" in said


@pytest.mark.parametrize(("bodies", "is_reported"), [(b"1234", False), (b"12xx", True)])
def test_bodies_are_compared_but_for_what_varies_within_a_subject(world, monkeypatch, bodies, is_reported):
    replies = iter([Reply(200, b"hit %c" % byte if byte < 65 else b"no hits") for byte in bodies])
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: next(replies))
    world.run(catalog=own_app(world), subjects=BOTH)
    said = [line for line in world.listener.notices if "different bodies" in line]
    assert bool(said) is is_reported


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("ModuleNotFoundError: No module named 'humanize'", "--requirements"),
        ("ImportError: cannot import name 'x' from 'y'", "--requirements"),
        ("KeyError: 'DATABASE_URL'", "--env"),
        ("ZeroDivisionError: division by zero", "--dry-run"),
        ("django.core.exceptions.ImproperlyConfigured: set the SECRET_KEY", "--env"),
    ],
)
def test_a_study_of_which_no_server_starts_stops_with_each_ones_error(world, error, hint):
    log = f'Traceback (most recent call last):\n  File "shop.py", line 1\n{error}\n[1] Worker exiting\n'
    world.fail = SubjectError("it ended", log=log)
    with pytest.raises(SubjectError) as stopped:
        world.run(catalog=own_app(world), subjects=BOTH)
    each = f'it ended\n    Traceback (most recent call last):\n      File "shop.py", line 1\n    {error}'
    assert stopped.value.message == f"no server starts\n  wsgiref+shop: {each}\n  waitress+shop: {each}"
    assert hint in stopped.value.hint
    assert not any("--expect-status" in line for line in world.listener.notices)


@pytest.mark.parametrize(
    ("answer", "shown", "hint"),
    [
        ("GET /: no complete reply within 10 s", "GET /: no complete reply within 10 s", "--timeout"),
        (Reply(404, b"nothing here\x1b[2J"), "status 404, 16 bytes: `nothing here\\x1b[2J`", "--path"),
        (
            Reply(301, b"", {"location": "https://127.0.0.1/"}),
            "status 301 to https://127.0.0.1/, 0 bytes: ``",
            "X-Forwarded-Proto",
        ),
    ],
)
def test_an_app_that_no_server_gets_a_success_from_is_not_loaded(world, monkeypatch, answer, shown, hint):
    monkeypatch.setattr("prony.study.replies.probe", lambda *arguments: answer)
    with pytest.raises(SubjectError, match="no server answers with a success") as stopped:
        world.run(catalog=own_app(world), subjects=BOTH)
    assert f"  wsgiref+shop: {shown}\n" in stopped.value.message
    assert hint in (stopped.value.hint or "")
    assert not world.happened("load")


# --- ends -------------------------------------------------------------------------------------------------


def test_a_trial_that_fails_does_not_stop_the_study(world):
    world.fail = "it ended before it was ready"
    world.run()
    trials, _, run = world.archive()
    assert [trial.outcome for trial in trials] == [Failed("start", "it ended before it was ready")] * 12
    assert run.status is RunStatus.FINISHED


def test_an_interruption_passes_through_and_keeps_what_was_finished(world):
    world.errors = {5: KeyboardInterrupt()}
    with pytest.raises(KeyboardInterrupt):
        world.run()
    trials, _, run = world.archive()
    assert [trial.outcome for trial in trials] == [Ok()] * 5
    assert run.status is RunStatus.INTERRUPTED
    assert world.log[-1][0] == "stop"
    assert not list((world.folder / "cache" / "run").iterdir())


def test_an_archive_that_exists_is_never_written_over(world):
    (world.folder / "out.prony").write_text("mine")
    with pytest.raises(ArchiveError, match="exists already"):
        world.run()
    assert (world.folder / "out.prony").read_text() == "mine"


def test_a_second_study_is_refused_while_another_measures(world):
    with claim_machine(), pytest.raises(HostError, match="another Prony is measuring on this machine"):
        world.run()
    assert world.log == []
    assert not (world.folder / "out.prony").exists()
    world.run()
    assert (world.folder / "out.prony").exists()


def test_a_study_of_which_no_subject_can_be_had_measures_nothing(world):
    world.unavailable = {"waitress": "no such version", "wsgiref": "no network"}
    with pytest.raises(SubjectError) as refused:
        world.run()
    assert "wsgiref+hello: no network" in str(refused.value)
    assert "waitress+hello: no such version" in str(refused.value)
    assert "prony doctor" in (refused.value.hint or "")
    assert not (world.folder / "out.prony").exists()

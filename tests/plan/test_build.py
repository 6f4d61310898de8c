"""From a study's text to cells in random order, without a file or a server."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from prony.core.errors import UsageError
from prony.model.exchange import Check, Contract, Request
from prony.model.json_codec import decode, encode
from prony.model.plan import Claim, ClaimKind, Design, Needs
from prony.model.sandbox import Network, SandboxChoice
from prony.model.subject import App, Frontend, Interface
from prony.model.workload import (
    Arrivals,
    ClosedLoop,
    CountStop,
    DurationStop,
    EngineChoice,
    Mix,
    MixPath,
    OpenLoop,
    Workload,
)
from prony.plan.build import PlanOptions, make_plan
from prony.plan.document import ProfileDocument, StudyDocument, WorkloadDocument

SECOND = 1_000_000_000
CHECK = Check(Request(path="/hello"), 200, b"Hello")
APPS = {
    "hello": App("hello", "Hello", "/apps/hello", {Interface.WSGI: "hello:app"}, contract=Contract((CHECK,))),
    "both": App("both", "Both", "/apps/both", {Interface.ASGI: "both:asgi", Interface.WSGI: "both:wsgi"}),
}
SERVERS = {
    "waitress": [Interface.WSGI],
    "granian": [Interface.WSGI, Interface.ASGI],
    "uvicorn": [Interface.ASGI],
    "static": [Interface.NONE],
}


class Shelf:
    """A catalogue of four servers, of which `granian` has the variant `granian-wide`."""

    waitress_needs_one = False

    def app(self, name):
        if name not in APPS:
            raise UsageError(f"there is no app `{name}`")
        return APPS[name]

    def behind(self, server):
        return "nginx" if self.split(server)[0] == "waitress" and self.waitress_needs_one else None

    def interfaces(self, server):
        return SERVERS[self.split(server)[0]]

    def split(self, server):
        entry, _, variant = server.partition("-")
        if entry not in SERVERS:
            raise UsageError(f"there is no server `{server}`")
        return entry, variant

    def serves(self, server):
        return ("hello",) if self.split(server)[0] == "static" else ()

    def of_app(self, server, app):
        return server

    def frontend(self, name):
        if name not in ("nginx", "nginx-keepalive"):
            raise UsageError(f"there is no frontend `{name}`")
        return Frontend("nginx", name.partition("-")[2])


def document(**changes):
    content = {
        "name": "mine",
        "title": "Mine",
        "subjects": [{"server": ["waitress", "granian"], "app": "hello"}],
        "workloads": [{"loop": "closed", "connections": [1, 10]}],
        "profiles": {
            "quick": {"blocks": 3, "duration": "2s", "warmup": "500ms", "timeout": "1s"},
            "full": {"blocks": 10, "duration": "1m"},
        },
    }
    return StudyDocument.model_validate({**content, **changes})


def plan_of(options=None, **changes):
    return make_plan(document(**changes), "as written", Shelf(), options or PlanOptions())


def test_a_server_that_needs_a_frontend_is_refused_without_one():
    shelf = Shelf()
    shelf.waitress_needs_one = True
    with pytest.raises(UsageError, match="`waitress` cannot be used without a frontend") as caught:
        make_plan(document(), "as written", shelf, PlanOptions())
    assert "`waitress@nginx`" in caught.value.hint
    behind = document(subjects=[{"server": "waitress@nginx", "app": "hello"}])
    (subject,) = make_plan(behind, "as written", shelf, PlanOptions()).subjects()
    assert subject.name == "waitress@nginx+hello"


def test_a_server_may_stand_behind_a_frontend():
    part = {"server": "granian-wide@nginx-keepalive", "app": "hello"}
    options = PlanOptions(settings={"nginx": {"workers": 2}, "granian": {"workers": 1}})
    (subject,) = plan_of(options, subjects=[part]).subjects()
    assert subject.name == "granian-wide@nginx-keepalive+hello"
    assert (subject.server, subject.variant, subject.settings) == ("granian", "wide", {"workers": 1})
    assert subject.frontend == Frontend("nginx", "keepalive", {"workers": 2})


def test_what_is_asked_of_the_entrance_is_the_frontends_or_else_the_servers():
    parts = [{"server": ["granian", "granian@nginx"], "app": "hello"}]
    options = PlanOptions(entrance={"tls": ("off", "ecdsa")}, settings={"nginx": {"workers": 2}})
    found = {one.name: (one.settings, one.frontend) for one in plan_of(options, subjects=parts).subjects()}
    assert found == {
        **{f"granian[tls={key}]+hello": ({"tls": key}, None) for key in ("off", "ecdsa")},
        **{
            f"granian@nginx[tls={key}]+hello": ({}, Frontend("nginx", "", {"tls": key, "workers": 2}))
            for key in ("off", "ecdsa")
        },
    }


def test_what_is_typed_for_a_server_wins_over_what_is_asked_of_every_entrance():
    options = PlanOptions(entrance={"tls": "ecdsa"}, settings={"granian": {"tls": "rsa2048"}})
    (subject,) = plan_of(options, subjects=[{"server": "granian", "app": "hello"}]).subjects()
    assert subject.settings == {"tls": "rsa2048"}


def test_a_server_without_an_interface_stands_for_the_apps_that_it_serves_by_itself():
    (subject,) = plan_of(subjects=[{"server": "static", "app": "hello"}]).subjects()
    assert subject.interface is Interface.NONE
    with pytest.raises(UsageError, match="`static` speaks none"):
        plan_of(subjects=[{"server": "static", "app": "both"}])


# --- expansion --------------------------------------------------------------------------------------------


def test_every_server_is_put_around_every_app_under_every_load():
    plan = plan_of(subjects=[{"server": ["waitress", "granian"], "app": ["hello", "both"]}])
    found = [(cell.subject.name, cell.workload.loop.connections) for cell in plan.cells]
    names = ["waitress+hello", "waitress+both", "granian+hello", "granian+both"]
    assert found == [(name, count) for name in names for count in (1, 10)]
    assert [cell.id for cell in plan.cells] == list(range(8))


def test_a_plan_keeps_what_was_written():
    plan = plan_of(question="Which?")
    assert (plan.name, plan.title, plan.text, plan.question) == ("mine", "Mine", "as written", "Which?")


def test_each_rate_of_an_open_loop_is_a_load():
    plan = plan_of(
        workloads=[{"loop": "open", "rate": ["60/m", 550], "arrivals": "poisson", "connections": 64}],
        subjects=[{"server": "waitress", "app": "hello"}],
    )
    assert [cell.workload.loop for cell in plan.cells] == [
        OpenLoop(1.0, Arrivals.POISSON, connections=64),
        OpenLoop(550.0, Arrivals.POISSON, connections=64),
    ]


def test_times_come_from_the_profile():
    load = plan_of().cells[0].workload
    assert (load.stop, load.warmup_ns, load.timeout_ns) == (DurationStop(2 * SECOND), SECOND // 2, SECOND)


def test_the_grace_is_the_time_out_unless_it_is_given():
    profile = {"blocks": 1, "duration": "1s", "timeout": "3s"}
    assert plan_of(profiles={"quick": profile}).cells[0].workload.grace_ns == 3 * SECOND
    assert plan_of(profiles={"quick": {**profile, "grace": "1s"}}).cells[0].workload.grace_ns == SECOND
    apart = plan_of(profiles={"quick": {**profile, "connect_timeout": "2s"}}).cells[0].workload
    assert (apart.timeout_ns, apart.connect_timeout_ns) == (3 * SECOND, 2 * SECOND)
    assert apart.grace_ns == 5 * SECOND


def test_a_fixed_count_takes_the_place_of_the_duration():
    plan = plan_of(workloads=[{"loop": "closed", "connections": 1, "requests": 100}])
    assert plan.cells[0].workload.stop == CountStop(100)


def test_connections_of_the_profile_replace_those_of_closed_loops_and_its_rate_that_of_open_ones():
    profile = {"blocks": 1, "duration": "1s", "connections": 7, "rate": 9}
    closed = plan_of(profiles={"quick": profile})
    assert {cell.workload.loop for cell in closed.cells} == {ClosedLoop(7)}
    opened = plan_of(profiles={"quick": profile}, workloads=[{"loop": "open", "rate": 1}])
    assert {cell.workload.loop for cell in opened.cells} == {OpenLoop(9.0)}


def test_the_contracts_first_request_is_what_is_measured_and_how_replies_are_checked():
    load = plan_of().cells[0].workload
    assert (load.request.path, load.expect_status, load.expect_body) == ("/hello", 200, b"Hello")


def test_another_request_than_the_contracts_is_not_checked_against_its_reply():
    load = plan_of(PlanOptions(request=Request(path="/other"))).cells[0].workload
    assert (load.request.path, load.expect_status, load.expect_body) == ("/other", None, None)


MIX = [{"path": "/hello", "weight": 9}, "/cart"]


def test_several_paths_of_a_load_are_a_mix_with_weights():
    found = plan_of(workloads=[load(paths=MIX)]).cells[0].workload
    assert found.mix == Mix((MixPath("/hello", 9.0), MixPath("/cart", 1.0)))
    assert found.request.path == "/hello"


def test_a_mix_is_checked_against_the_contract_where_that_says_the_same_of_each_path(monkeypatch):
    found = plan_of(workloads=[load(paths=MIX)]).cells[0].workload
    assert (found.expect_status, found.expect_body) == (None, None)
    cart = replace(CHECK, request=replace(CHECK.request, path="/cart"))
    monkeypatch.setitem(APPS, "hello", replace(APPS["hello"], contract=Contract((CHECK, cart))))
    found = plan_of(workloads=[load(paths=MIX)]).cells[0].workload
    assert (found.expect_status, found.expect_body) == (200, b"Hello")


def test_a_load_without_keep_alive_asks_for_it_in_every_request():
    plan = plan_of(workloads=[{"loop": "closed", "connections": 1, "keep_alive": False}])
    assert not any(cell.workload.request.keep_alive for cell in plan.cells)


def test_engine_and_sandbox_are_those_of_the_command_line():
    engine, sandbox = EngineChoice(threads=2), SandboxChoice(network=Network.HOST)
    cell = plan_of(PlanOptions(engine=engine, sandbox=sandbox)).cells[0]
    assert (cell.engine, cell.sandbox) == (engine, sandbox)


def test_a_variants_subject_knows_its_entry():
    subject = plan_of(subjects=[{"server": "granian-wide", "app": "hello"}]).subjects()[0]
    assert (subject.name, subject.server, subject.variant) == ("granian-wide+hello", "granian", "wide")


def test_settings_of_the_variant_win_over_those_of_its_server_and_both_over_the_file():
    options = PlanOptions(settings={"granian": {"a": 2, "b": 2}, "granian-wide": {"a": 3}})
    part = {"server": "granian-wide", "app": "hello", "settings": {"a": 1, "b": 1, "c": 1}}
    assert plan_of(options, subjects=[part]).subjects()[0].settings == {"a": 3, "b": 2, "c": 1}


# --- the interface ----------------------------------------------------------------------------------------


def test_the_servers_first_interface_that_the_app_offers_is_taken():
    assert plan_of(subjects=[{"server": "granian", "app": "both"}]).subjects()[0].interface is Interface.WSGI
    assert plan_of(subjects=[{"server": "uvicorn", "app": "both"}]).subjects()[0].interface is Interface.ASGI


def test_a_study_may_choose_the_interface():
    part = {"server": "granian", "app": "both", "interface": "asgi"}
    assert plan_of(subjects=[part]).subjects()[0].interface is Interface.ASGI


@pytest.mark.parametrize(
    "part",
    [{"server": "uvicorn", "app": "hello"}, {"server": "waitress", "app": "both", "interface": "asgi"}],
)
def test_an_app_that_the_server_cannot_call_is_refused_with_what_each_speaks(part):
    with pytest.raises(UsageError, match=r"`\w+` speaks \w+, but the app `\w+` offers \w+") as error:
        plan_of(subjects=[part])
    assert "prony servers" in (error.value.hint or "")


# --- choices ----------------------------------------------------------------------------------------------


def test_quick_is_the_profile_unless_another_is_named():
    assert plan_of().profile == "quick"
    assert plan_of(PlanOptions(profile="full")).blocks == 10


def test_without_quick_the_first_profile_is_taken():
    assert plan_of(profiles={"slow": {"blocks": 1, "duration": "1s"}}).profile == "slow"


def test_an_unknown_profile_is_refused_with_those_that_there_are():
    with pytest.raises(UsageError, match="study `mine` has no profile `fast`; it has quick, full"):
        plan_of(PlanOptions(profile="fast"))


def test_repeats_of_the_command_line_win():
    assert plan_of(PlanOptions(blocks=7)).blocks == 7


def test_only_keeps_the_subjects_that_fit_and_the_ids_of_the_whole_plan():
    plan = plan_of(PlanOptions(only=("granian*",)))
    assert [(cell.id, cell.subject.name) for cell in plan.cells] == [
        (2, "granian+hello"),
        (3, "granian+hello"),
    ]


def test_several_patterns_keep_what_fits_any_in_the_order_of_the_study():
    plan = plan_of(PlanOptions(only=("granian*", "w*", "granian+*")))
    assert [cell.id for cell in plan.cells] == [0, 1, 2, 3]
    with pytest.raises(UsageError, match=r"`--only nginx\*` matches no subject"):
        plan_of(PlanOptions(only=("granian*", "nginx*")))


def test_connections_keep_the_closed_loops_that_have_so_many():
    loads = [
        {"loop": "closed", "connections": [10, 20, 30]},
        {"loop": "open", "rate": 5, "connections": 20, "name": "beside"},
    ]
    plan = plan_of(PlanOptions(connections=(30, 20)), workloads=loads)
    assert [cell.workload.loop for cell in plan.cells] == [ClosedLoop(20), ClosedLoop(30)] * 2


def test_connections_that_no_load_has_are_refused_with_those_there_are():
    with pytest.raises(UsageError, match="`--connections 7`: no load of `mine` has so many") as error:
        plan_of(PlanOptions(connections=(10, 7)))
    assert error.value.hint == "its closed loops have 1, 10 connections"


def test_connections_of_a_study_without_closed_loops_are_refused():
    with pytest.raises(UsageError, match="no load of `mine`") as error:
        plan_of(PlanOptions(connections=(10,)), workloads=[{"loop": "open", "rate": 20}])
    assert error.value.hint == "it has open loops only"


def test_only_that_fits_nothing_is_refused_with_the_names():
    with pytest.raises(UsageError, match=r"`--only nginx\*` matches no subject of `mine`") as error:
        plan_of(PlanOptions(only=("nginx*",)))
    assert error.value.hint == "its subjects: waitress+hello, granian+hello"


def test_two_subjects_of_one_name_must_be_the_same():
    part = {"server": "waitress", "app": "hello"}
    assert len(plan_of(subjects=[part, part]).subjects()) == 1
    with pytest.raises(UsageError, match="two different subjects are named `waitress\\+hello`"):
        plan_of(subjects=[part, {**part, "settings": {"threads": 2}}])


# --- what a document may not say --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"loop": "open"}, "an open loop needs `rate`"),
        ({"loop": "closed"}, "a closed loop needs `connections`"),
        ({"loop": "closed", "connections": 1, "rate": 5}, "a closed loop has no `rate`"),
        ({"loop": "open", "rate": 0}, "greater than 0"),
        ({"loop": "open", "rate": "fast"}, "`fast` is not a rate"),
        ({"loop": "open", "rate": float("inf")}, "finite"),
        ({"loop": "closed", "connections": 0}, "greater than 0"),
        ({"loop": "closed", "connections": []}, "at least 1"),
        ({"loop": "closed", "connections": 1, "streams": 0}, "greater than 0"),
        ({"loop": "closed", "connections": 1, "streams": 10_001}, "less than or equal to 10000"),
        ({"loop": "closed", "connections": 1, "streams": []}, "at least 1"),
        (
            {"loop": "closed", "connections": 1, "streams": 2, "keep_alive": False},
            "needs connections that are kept",
        ),
        ({"loop": "half-open", "rate": 1}, "'open' or 'closed'"),
        ({"loop": "open", "rate": 1, "speed": 2}, "Extra inputs are not permitted"),
        ({"loop": "open", "rate": 1, "paths": ["/"]}, "expected 2 to 100 paths, found `1`"),
        ({"loop": "open", "rate": 1, "paths": ["/", "/"]}, "expected each path once"),
        ({"loop": "open", "rate": 1, "paths": ["/", "x"]}, "expected a path that starts with"),
        ({"loop": "open", "rate": 1, "paths": ["/", {"path": "/a", "weight": 0}]}, "expected a weight"),
        ({"loop": "open", "rate": 1, "path": "/", "paths": ["/", "/a"]}, "exclude each other"),
    ],
)
def test_a_load_that_cannot_be_is_refused(load, message):
    with pytest.raises(ValidationError, match=message):
        WorkloadDocument.model_validate(load)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"duration": "10"}, "`10` is not a duration"),
        ({"duration": "0s"}, "greater than 0"),
        ({"blocks": 0}, "greater than 0"),
        ({"warmup": -1}, "greater than or equal to 0"),
        ({"warm-up": "1s"}, "Extra inputs are not permitted"),
    ],
)
def test_a_profile_that_cannot_be_is_refused(change, message):
    with pytest.raises(ValidationError, match=message):
        ProfileDocument.model_validate({"blocks": 1, "duration": "1s", **change})


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Not A Name"},
        {"subjects": []},
        {"workloads": []},
        {"profiles": {}},
        {"format": 2},
        {"extra": 1},
    ],
)
def test_a_study_that_lacks_something_is_refused(change):
    with pytest.raises(ValidationError):
        document(**change)


def test_a_document_is_not_changed_by_a_plan():
    written = document()
    make_plan(written, "", Shelf(), PlanOptions(blocks=9, only=("waitress*",)))
    assert written == document()
    assert replace(plan_of(), text="") == make_plan(written, "", Shelf(), PlanOptions())


# --- loads of a study -------------------------------------------------------------------------------------


def profile(**changes):
    return {"quick": {"blocks": 1, "duration": "1s", **changes}}


def load(**changes):
    return {"loop": "closed", "connections": 1, **changes}


def test_a_load_may_be_for_some_subjects_only():
    plan = plan_of(workloads=[load(), load(connections=9, subjects="granian*")])
    found = [(cell.subject.name, cell.workload.loop.connections) for cell in plan.cells]
    assert found == [("waitress+hello", 1), ("granian+hello", 1), ("granian+hello", 9)]


def test_streams_make_loads_of_their_own_and_are_part_of_what_identifies_a_cell():
    plan = plan_of(workloads=[load(connections=[2, 4], streams=[1, 8])])
    cells = [cell for cell in plan.cells if cell.subject.name == "waitress+hello"]
    found = [(cell.workload.loop.connections, cell.workload.streams) for cell in cells]
    assert found == [(2, 1), (2, 8), (4, 1), (4, 8)]
    assert [cell.is_under({"connections": 4, "streams": 8}) for cell in cells] == [False, False, False, True]
    assert len({cell.workload for cell in cells}) == 4
    assert cells[3].describe_load() == "closed loop, 4 connections, 8 streams each, 2 s"
    assert "streams" not in encode(cells[2].workload)
    assert decode(Workload, encode(cells[3].workload), "workload") == cells[3].workload


def test_a_profile_may_change_the_streams_of_a_load():
    loads = [load(name="b", streams=8)]
    plan = plan_of(workloads=loads, profiles=profile(workloads={"b": {"streams": [2, 4]}}))
    assert [cell.workload.streams for cell in plan.cells[:2]] == [2, 4]


def test_a_profile_changes_a_load_by_its_name_and_leaves_the_others():
    changes = {"many": {"connections": [5, 6], "requests": 3, "warmup": "1s", "timeout": "4s"}}
    plan = plan_of(
        subjects=[{"server": "waitress", "app": "hello"}],
        workloads=[load(), load(name="many", requests=100)],
        profiles=profile(workloads=changes),
    )
    first, second, third = (cell.workload for cell in plan.cells)
    assert (first.loop, first.stop, first.warmup_ns) == (ClosedLoop(1), DurationStop(SECOND), 0)
    assert (second.loop, third.loop) == (ClosedLoop(5), ClosedLoop(6))
    assert (second.stop, second.warmup_ns, second.grace_ns) == (CountStop(3), SECOND, 4 * SECOND)


def test_a_loads_own_times_win_over_the_profiles_and_its_change_over_both():
    loads = [load(duration="3s"), load(name="b", duration="3s")]
    plan = plan_of(workloads=loads, profiles=profile(workloads={"b": {"duration": "5s"}}))
    assert [cell.workload.stop.duration_ns for cell in plan.cells[:2]] == [3 * SECOND, 5 * SECOND]


def test_a_profile_may_do_without_a_load():
    plan = plan_of(workloads=[load(), load(name="b")], profiles=profile(workloads={"b": {"skip": True}}))
    assert len(plan.cells) == 2


def test_a_load_may_have_its_own_path_and_headers():
    request = plan_of(workloads=[load(path="/a?b", headers={"X-Y": "z"})]).cells[0].workload.request
    assert (request.path, request.headers) == ("/a?b", (("X-Y", "z"),))


def test_headers_beside_the_contracts_request_leave_its_reply_expected_and_another_path_does_not():
    expected = [
        plan_of(workloads=[load(**more)]).cells[0].workload.expect_body
        for more in ({"headers": {"X-Y": "z"}}, {"path": "/other"})
    ]
    assert expected == [b"Hello", None]


# --- generators -------------------------------------------------------------------------------------------


def test_each_generator_of_a_load_is_a_cell_of_its_own():
    plan = plan_of(
        subjects=[{"server": "waitress", "app": "hello"}],
        workloads=[load(engines=["prony", "wrk"], threads=4, connections=[1, 2])],
    )
    found = [(c.engine.name, c.engine.threads, c.workload.loop.connections) for c in plan.cells]
    assert found == [("prony", 4, 1), ("prony", 4, 2), ("wrk", 4, 1), ("wrk", 4, 2)]
    assert len({cell.id for cell in plan.cells}) == 4


def test_a_load_is_told_with_its_generator_unless_that_is_pronys_own():
    plan = plan_of(workloads=[load(engines=["prony", "wrk"], threads=2)], profiles=profile())
    told = [cell.describe_load() for cell in plan.cells[:2]]
    assert told == ["closed loop, 1 connection, 1 s", "closed loop, 1 connection, 1 s, by wrk with 2 threads"]


def test_without_generators_the_command_lines_is_taken():
    plan = plan_of(PlanOptions(engine=EngineChoice("ab", threads=3)))
    assert {(cell.engine.name, cell.engine.threads) for cell in plan.cells} == {("ab", 3)}


def test_a_cells_load_tells_it_from_others():
    counted = plan_of(workloads=[load(requests=7)]).cells[0]
    assert counted.load == {"connections": 1, "streams": 1, "requests": 7, "threads": 1}
    opened = plan_of(workloads=[{"loop": "open", "rate": 5}]).cells[0]
    assert opened.load == {"rate": 5, "streams": 1, "threads": 1}
    assert opened.is_under({"rate": 5.0})
    assert opened.is_under({})
    assert not opened.is_under({"connections": 1})


def test_only_fits_generators_too_where_a_plan_has_several():
    loads = [load(engines=["prony", "wrk"])]
    plan = plan_of(PlanOptions(only=("wrk",)), workloads=loads)
    assert {cell.engine.name for cell in plan.cells} == {"wrk"}
    with pytest.raises(UsageError):
        plan_of(PlanOptions(only=("prony",)))


# --- what else a study says -------------------------------------------------------------------------------


def test_limits_of_the_study_hold_where_the_command_line_names_no_others():
    limits = {"cpus": 2, "memory": "1M", "pids": 5}
    options = PlanOptions(sandbox=SandboxChoice(pids=9))
    sandbox = plan_of(options, sandbox=limits).cells[0].sandbox
    assert (sandbox.cpu_quota, sandbox.memory_bytes, sandbox.pids) == (2, 1 << 20, 9)


def test_design_claims_and_notes_become_the_plans():
    claim = {"name": "a", "text": "A", "kind": "ratio", "metric": "ok_per_s", "against": "g*", "low": 1}
    plan = plan_of(
        notes=["another machine"],
        design={"margin": 0.1, "primary": {"connections": 10}, "trimmed_mean": True},
        claims=[{**claim, "load": {"connections": 1}, "needs": {"blocks": 7}}],
    )
    assert plan.notes == ("another machine",)
    assert plan.design == Design(0.1, {"connections": 10}, trimmed_mean=True)
    (found,) = plan.claims
    assert found == Claim(
        *("a", "A", ClaimKind.RATIO, "ok_per_s"),
        against="g*",
        load={"connections": 1},
        low=1,
        needs=Needs(blocks=7),
    )


def test_cpus_are_shared_out_by_the_threads_of_the_built_in_generator_unless_all_are_shared():
    plan = plan_of()
    scripts = replace(plan.cells[0], engine=EngineChoice("python-asyncio-processes", 4))
    ours = replace(plan.cells[0], engine=EngineChoice(threads=2))
    assert replace(plan, cells=(scripts,)).placed_threads == 1
    assert replace(plan, cells=(scripts, ours)).placed_threads == 2
    shared = replace(scripts, sandbox=replace(scripts.sandbox, share_cpus=True))
    both = replace(plan, cells=(shared, replace(shared, engine=ours.engine)))
    assert (both.placed_threads, both.engine_threads) == (4, 2)

"""The five built-in studies: a plan in every profile, and the published figures as they were published."""

import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import get_args

import pytest

from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.settings import speaks_tls
from prony.catalog.schema.studies import built_in_studies, read_study
from prony.cli.protocol import with_usual_pilot
from prony.core.metrics import METRICS
from prony.engine.registry import ENGINES
from prony.figures.claim_needs import Cpus, is_claimed, planned, unmet
from prony.figures.trial_metrics import has_roles
from prony.model.plan import ClaimKind
from prony.model.sandbox import SandboxChoice
from prony.model.workload import CountStop, DurationStop
from prony.plan.build import PlanOptions, make_plan
from prony.plan.document import Generator
from prony.plan.factors import grid_words, without_levels
from prony.study.admission import to_leave_out
from prony.study.extent import extent_of
from prony.study.task import checks_of_source, plan_of_source, read_source

SECOND = 1_000_000_000
# Published experiments; the others are Prony's own.
STUDIES = ("django-fastcgi", "embedded-servers", "load-scripts", "psgi-servers", "wsgi-servers")
OWN = ("tls-http2",)
PROFILES = ("quick", "full", "original")
MANY = 10_000
DOCS = Path(__file__).parents[3] / "docs" / "studies"


@pytest.fixture(scope="module")
def catalog():
    return load_catalog()


@pytest.fixture(scope="module")
def plan_of(catalog):
    def plan(name, profile="quick", **options):
        source = read_study(name)
        wanted = PlanOptions(profile=profile, **options)
        return make_plan(source.document, source.text, catalog, wanted, source.originals)

    return plan


def test_there_are_five():
    assert tuple(built_in_studies()) == tuple(sorted((*STUDIES, *OWN)))


@pytest.mark.parametrize("name", STUDIES)
class TestEachStudy:
    def test_it_is_named_after_its_file_and_tells_where_it_comes_from(self, name):
        document = read_study(name).document
        assert document.name == name
        assert document.source
        assert document.notes
        assert document.question.endswith("?")
        assert document.calibration

    @pytest.mark.parametrize("profile", PROFILES)
    def test_every_profile_is_a_plan(self, name, profile, plan_of):
        plan = plan_of(name, profile)
        assert plan.cells
        assert plan.claims
        assert plan.originals
        assert plan.calibration.id not in {cell.id for cell in plan.cells}

    def test_every_profile_has_the_same_subjects(self, name, plan_of):
        names = [{subject.name for subject in plan_of(name, profile).subjects()} for profile in PROFILES]
        assert names[0] == names[1] == names[2]

    def test_the_quick_one_allows_verdicts_in_about_ten_minutes(self, name, plan_of, catalog):
        plan = plan_of(name)
        assert plan.blocks == 5
        assert extent_of(plan, catalog).seconds[1] <= 15 * 60

    def test_the_full_one_has_ten_blocks(self, name, plan_of):
        assert plan_of(name, "full").blocks == 10

    def test_the_original_runs_enough_blocks_for_verdicts_and_says_how_many_there_were(self, name, plan_of):
        plan, document = plan_of(name, "original"), read_study(name).document
        assert plan.blocks >= 5
        published = document.profiles["original"].as_published
        assert published
        assert any(published in note for note in plan.notes)

    def test_it_names_its_sources(self, name):
        for source in read_study(name).document.sources:
            assert source.title
            assert source.date or source.about

    def test_every_claim_says_where_it_stands(self, name):
        assert all(claim.place for claim in read_study(name).document.claims)

    def test_every_claim_is_testable_in_the_original_on_a_large_machine(self, name, plan_of):
        # What the article tried beside its own table, such as numbers of workers, is a profile of its own.
        profiles = ["original", *({*read_study(name).document.profiles} - {"original"})]
        plans = [plan_of(name, profile) for profile in profiles]
        for claim in plans[0].claims:
            assert claim.metric in METRICS
            assert any(unmet(claim, planned(plan, Cpus(8, 8))) is None for plan in plans), claim.name

    @pytest.mark.parametrize("profile", PROFILES)
    def test_no_claim_on_failures_is_decided_by_a_short_window_or_time_out(self, name, profile, plan_of):
        plan, original = plan_of(name, profile), plan_of(name, "original")
        for claim in plan.claims:
            if claim.counts_trials and unmet(claim, planned(plan, Cpus(8, 8))) is None:
                assert min(timeouts(plan, claim)) >= min(timeouts(original, claim)), claim.name

    def test_no_claim_on_ten_thousand_connections_is_decided_by_a_short_window(self, name, plan_of):
        # To open them takes seconds: a short window would decide what answers, and what memory it takes.
        for profile in read_study(name).document.profiles:
            plan = plan_of(name, profile)
            for claim in plan.claims:
                cells = [cell for cell in plan.cells if is_claimed(claim, cell)]
                many = [cell for cell in cells if cell.load.get("connections", 0) >= MANY]
                if many and unmet(claim, planned(plan, Cpus(8, 8))) is None:
                    assert min(cell.workload.stop.duration_ns for cell in many) >= 15 * SECOND, claim.name

    def test_every_claim_on_failures_says_how_long_it_must_be_looked_at(self, name, plan_of):
        # A short window or a few requests show no failure, and a short time-out makes some.
        plan = plan_of(name, "original")
        for claim in (one for one in plan.claims if one.counts_trials or one.kind is ClaimKind.FAILS):
            stops = [cell.workload.stop for cell in plan.cells if is_claimed(claim, cell)]
            counted = any(isinstance(stop, CountStop) for stop in stops)
            named = claim.needs.requests if counted else claim.needs.duration_ns and claim.needs.timeout_ns
            assert named, claim.name

    def test_claims_compare_the_subjects_of_the_original_alone(self, name, plan_of):
        plan, document = plan_of(name, "original"), read_study(name).document
        added = {subject for part in document.subjects if part.added for subject in document.names(part)}
        named = {claim.name for claim in document.claims if claim.among}
        for claim in plan.claims:
            assert claim.name in named or not any(claim.is_about(subject) for subject in added), claim.name

    def test_some_published_figure_stands_beside_every_profile(self, name, plan_of):
        for profile in PROFILES:
            plan = plan_of(name, profile)
            assert any(
                cell.subject.name == one.subject and cell.is_under(one.load)
                for cell in plan.cells
                for one in plan.originals
            )

    def test_every_role_of_a_claim_is_one_of_its_subjects(self, name, plan_of, catalog):
        plan = plan_of(name)
        for claim in plan.claims:
            entries = [
                catalog.server(subject.server)
                for subject in plan.subjects()
                if fnmatchcase(subject.name, claim.subject)
            ]
            assert not claim.role or all(claim.role in {role.role for role in one.roles} for one in entries)


def timeouts(plan, claim):
    return [cell.workload.timeout_ns for cell in plan.cells if is_claimed(claim, cell)]


def test_quick_leaves_what_its_time_out_would_decide_to_longer_profiles(plan_of):
    quick = planned(plan_of("wsgi-servers"), Cpus(2, 2))
    claims = {claim.name: claim for claim in plan_of("wsgi-servers").claims}
    assert unmet(claims["mod-wsgi-errors"], quick).words == "mod-wsgi* measured at 10000 connections"
    quick = planned(plan_of("embedded-servers"), Cpus(2, 2))
    claims = {claim.name: claim for claim in plan_of("embedded-servers").claims}
    assert unmet(claims["wsgiref-loses"], quick).words == "a window of 60 s; it has 6 s"
    assert unmet(claims["twisted-flask-collapses"], quick).words == "a window of 180 s; it has 6 s"


def test_claims_on_a_load_of_ab_ask_for_as_many_requests(plan_of):
    # A prefork pool grows within the first hundreds; the full profile has half of the largest load.
    claims = plan_of("django-fastcgi", "original").claims
    asked = {claim.name: re.search(r"`ab -n (\d+) ", claim.place or "") for claim in claims}
    for claim in claims:
        if found := asked[claim.name]:
            assert claim.needs.requests == min(int(found[1]), 5000), claim.name
    assert sum(map(bool, asked.values())) >= 8


@pytest.mark.parametrize(
    "name",
    [
        *("bjoern-fastest", "cherrypy-second", "cherrypy-best-of-pure-python", "uwsgi-slowest"),
        *("cherrypy-lowest-latency", "uwsgi-latency-worst", "cherrypy-no-errors", "gunicorn-struggles"),
        *("mod-wsgi-errors", "gunicorn-errors", "uwsgi-errors", "meinheld-breaks"),
    ],
)
def test_what_one_cpu_would_decide_needs_the_two_of_the_source(name, plan_of):
    # CherryPy took 143 % there, Gunicorn 169 and mod_wsgi 200: with one CPU who has most workers loses most.
    plan = plan_of("wsgi-servers", "original")
    (claim,) = (one for one in plan.claims if one.name == name)
    assert unmet(claim, planned(plan, Cpus(1, 1))).words == "2 CPUs for the server; it has 1"


def claim_of(study, name):
    (found,) = (one for one in read_study(study).document.claims if one.name == name)
    return found


@pytest.mark.parametrize(
    ("study", "name", "bounds"),
    [
        # "Slightly faster": neither slower nor far faster.
        ("django-fastcgi", "prefork-slightly-faster", (0.75, 1)),
        # Of 13 MB became 46 MB, and of 16 MB 119: 2 % more would do for "it grows".
        ("wsgi-servers", "cherrypy-memory-grows", (2, None)),
        ("wsgi-servers", "uwsgi-memory-grows", (3, None)),
        # 9 % lost requests are struggling, and 2.5 to 15.6 % in each round are breaking.
        ("wsgi-servers", "gunicorn-struggles", (0.01, None)),
        ("wsgi-servers", "meinheld-breaks", (0.025, None)),
        ("embedded-servers", "twisted-flask-collapses", (10, None)),
        ("embedded-servers", "wsgiref-slow", (10, None)),
    ],
)
def test_a_claim_asks_for_as_much_as_its_source_says(study, name, bounds):
    claim = claim_of(study, name)
    assert (claim.low, claim.high) == bounds


def test_the_server_that_a_source_exempts_decides_no_claim(plan_of):
    claims = {claim.name: claim for claim in plan_of("embedded-servers").claims}
    assert not claims["falcon-faster"].is_about("wsgiref+flask-hello")
    assert claims["frameworks-alike-on-wsgiref"].is_about("wsgiref+flask-hello")
    # What collapsed in the source was slower than wsgiref.
    assert not claims["wsgiref-slow"].is_about("twisted+flask-hello")
    assert claims["wsgiref-slow"].is_about("twisted+falcon-hello")


@pytest.mark.parametrize(
    ("study", "name", "cpus", "words"),
    [
        ("django-fastcgi", "threads-slower", Cpus(1, 2), "2 CPUs for the server; it has 1"),
        ("psgi-servers", "starman-fastest", Cpus(1, 2), "2 CPUs for the server; it has 1"),
        *(
            ("load-scripts", name, Cpus(2, 1), "2 CPUs for the generator; it has 1")
            for name in (
                "coroutines-fastest-in-one-process",
                "coroutines-in-processes-fastest",
                "threads-one-core",
            )
        ),
    ],
)
def test_a_claim_about_several_cpus_needs_them(study, name, cpus, words, plan_of):
    plan = plan_of(study, "original")
    (claim,) = (one for one in plan.claims if one.name == name)
    assert unmet(claim, planned(plan, cpus)).words == words


@pytest.mark.parametrize(
    ("study", "names"),
    [
        (
            "wsgi-servers",
            "meinheld-one-core cherrypy-second cherrypy-best-of-pure-python uwsgi-latency-worst",
        ),
        ("wsgi-servers", "uwsgi-memory-grows gunicorn-memory-flat gunicorn-cpu-full-at-low-load"),
        ("wsgi-servers", "mod-wsgi-memory-among-highest mod-wsgi-memory-flat bjoern-few-errors"),
        ("wsgi-servers", "uwsgi-logging-costs-little uwsgi-memory-grows-with-kept-connections"),
        ("wsgi-servers", "bjoern-latency-grows gunicorn-latency-constant mod-wsgi-latency-average"),
        ("wsgi-servers", "meinheld-latency-acceptable uwsgi-behind-nginx-no-faster"),
        ("embedded-servers", "tornado-runner-up-with-falcon tornado-runner-up-with-flask"),
        ("embedded-servers", "wsgiref-slow frameworks-alike-on-wsgiref"),
        ("psgi-servers", "cpu-alike uwsgi-without-errors"),
        ("django-fastcgi", "embedded-steadier threads-address-space"),
        ("django-fastcgi", "three-workers-slower four-workers-slower prefork-little-more-memory-at-20"),
        ("load-scripts", "processes-peak-at-80 processes-rise-to-80"),
        ("load-scripts", "processes-cost-more-cpu processes-cost-more-memory only-distributed-goes-further"),
    ],
)
def test_what_a_source_says_beside_its_first_sentence_is_claimed_too(study, names):
    assert set(names.split()) <= {one.name for one in read_study(study).document.claims}


def test_the_time_out_of_django_is_longer_than_its_clients_have_to_wait(plan_of):
    # 500 clients at 20 replies a second wait for 25 s.
    for profile in PROFILES:
        many = [cell for cell in plan_of("django-fastcgi", profile).cells if cell.load["connections"] == 500]
        assert {cell.workload.timeout_ns for cell in many} == {60 * SECOND}


def test_every_generator_that_there_is_may_be_named():
    assert set(ENGINES) <= set(get_args(Generator))


# --- the configurations that were published ---------------------------------------------------------------


def loads(plan, subject):
    return [cell.load["connections"] for cell in plan.cells if cell.subject.name == subject]


def test_wsgi_servers_are_measured_as_published(plan_of):
    plan = plan_of("wsgi-servers", "original")
    published = [*range(100, 1001, 100), *range(2000, 10001, 1000)]
    assert loads(plan, "bjoern-as-found+hello") == published
    assert {cell.workload.stop for cell in plan.cells} == {DurationStop(30 * SECOND)}
    assert {cell.workload.timeout_ns for cell in plan.cells} == {2 * SECOND}
    assert loads(plan, "cherrypy-as-found+hello") == published
    assert loads(plan, "uwsgi-two-a-cpu-socket@nginx-many-clients+hello") == published
    assert (plan.blocks, plan.design.trimmed_mean) == (5, True)
    assert {(cell.sandbox.cpu_quota, cell.sandbox.memory_bytes) for cell in plan.cells} == {(2.0, 512 << 20)}
    assert plan.calibration.sandbox.memory_bytes is None


def test_wsgi_servers_are_measured_by_the_originals_generator_too(plan_of):
    study = read_study("wsgi-servers")
    checks = checks_of_source(study, plan_of("wsgi-servers", "original"))
    assert {(cell.engine.name, cell.load["connections"]) for cell in checks} == {
        ("wrk", level) for level in (100, 1000, 10_000)
    }
    assert {cell.subject.name for cell in checks} == {
        subject.name for subject in plan_of("wsgi-servers", "original").subjects()
    }
    assert checks_of_source(study, plan_of("wsgi-servers", "quick")) == ()


def test_psgi_servers_have_the_limits_of_the_originals_machine(plan_of):
    cells = plan_of("psgi-servers", "original").cells
    assert {(cell.sandbox.cpu_quota, cell.sandbox.memory_bytes) for cell in cells} == {(4.0, 768 << 20)}


def test_a_limit_of_the_command_line_wins_over_the_studys(plan_of):
    plan = plan_of("wsgi-servers", sandbox=SandboxChoice(cpu_quota=0.5))
    assert plan.cells[0].sandbox.cpu_quota == 0.5
    assert plan.cells[0].sandbox.memory_bytes == 512 << 20


def test_embedded_servers_are_measured_as_published(plan_of):
    plan = plan_of("embedded-servers", "original")
    assert {(cell.load["rate"], cell.workload.stop) for cell in plan.cells} == {
        (550.0, DurationStop(180 * SECOND))
    }
    # vegeta had 30 s for connecting, and as long for the head of the reply.
    assert {(cell.workload.connect_timeout_ns, cell.workload.timeout_ns) for cell in plan.cells} == {
        (30 * SECOND, 30 * SECOND)
    }


def test_psgi_servers_ask_for_keep_alive_and_stand_alone_or_behind_nginx(plan_of):
    plan = plan_of("psgi-servers", "original")
    alone = [cell for cell in plan.cells if cell.subject.frontend is None]
    behind = [cell for cell in plan.cells if cell.subject.frontend is not None]
    assert (len(alone), len(behind)) == (8, 2 * 8)
    assert {cell.workload.request.headers for cell in behind} == {()}
    assert {(cell.load["connections"], cell.workload.stop) for cell in alone} == {(10, DurationStop(SECOND))}
    assert {cell.workload.request.headers for cell in alone} == {(("Connection", "keep-alive"),)}
    assert all(cell.workload.expect_body == b"Hello, world!\n" for cell in plan.cells)
    assert max(cell.load["connections"] for cell in behind) > 1024
    assert {cell.subject.server for cell in behind} == {"starman", "uwsgi-psgi"}


def test_load_scripts_are_measured_as_published(plan_of):
    plan = plan_of("load-scripts", "original")
    found = {}
    for cell in plan.cells:
        size = (cell.engine.threads, cell.load["connections"] / cell.engine.threads)
        found.setdefault(cell.engine.name, []).append(size)
    assert found["python-processes"] == [(1, 20), (1, 50), (1, 80), (1, 100)]
    assert found["python-threads"] == [(1, 20), (1, 80), (1, 200)]
    assert found["python-asyncio"] == [(1, 20), (1, 80), (1, 150)]
    assert sorted(found["python-asyncio-processes"]) == [(4, 80), (4, 100), (4, 120), (6, 80), (8, 80)]
    assert set(found) == {*get_args(Generator), "local:1@4%", "local:2@4%", "local:4@4%"}


def test_django_is_measured_as_published(plan_of):
    plan = plan_of("django-fastcgi", "original")
    stops = {(cell.load["connections"], cell.workload.stop) for cell in plan.cells}
    assert stops >= {(20, CountStop(1000)), (500, CountStop(10_000)), (50, CountStop(1000))}
    assert not any(cell.workload.request.keep_alive for cell in plan.cells)
    threads = [cell for cell in plan.cells if cell.load["connections"] in (50, 100)]
    assert {cell.subject.name for cell in threads} == {"flup-threaded@nginx-many-clients+django-postgres"}


# --- the figures that were published ----------------------------------------------------------------------


def figure(name, subject, metric, engine="*", **load):
    (found,) = (
        one.value
        for one in read_study(name).originals
        if (one.subject, one.metric, one.engine) == (subject, metric, engine)
        and all(one.load.get(key) == value for key, value in load.items())
    )
    return found


@pytest.mark.parametrize(
    ("server", "few", "some", "many"),
    [
        ("bjoern-as-found", 61_476, 96_561, 82_332),
        ("cheroot-as-found", 4_090, 4_089, 4_004),
        ("gunicorn-as-found", 1_045, 1_403, 807),
        ("meinheld", 1_129, 2_521, 2_733),
        ("mod-wsgi-express-as-found", 1_254, 1_767, 1_748),
        ("uwsgi-as-found", 3.5, 36.5, 336),
    ],
)
def test_the_rates_of_wsgi_servers_are_the_published_ones(server, few, some, many):
    for connections, published in ((100, few), (1000, some), (10_000, many)):
        found = figure("wsgi-servers", f"{server}+hello", "ok_per_s", connections=connections)
        assert found == pytest.approx(published, rel=0.01, abs=0.5)


def test_all_figures_of_wsgi_servers_are_there_and_the_spoilt_ones_are_marked():
    originals = read_study("wsgi-servers").originals
    assert set(Counter(one.metric for one in originals).values()) == {6 * 19}
    assert len({one.metric for one in originals}) == 5
    spoilt = [one for one in originals if "a round that lost every connection is in the mean" in one.note]
    assert len(spoilt) == 15


def test_times_sizes_and_errors_of_wsgi_servers_are_in_the_metrics_units():
    assert figure("wsgi-servers", "cheroot-as-found+hello", "service_ok_mean", connections=100) == 2_440_000
    assert figure("wsgi-servers", "bjoern-as-found+hello", "memory_peak", connections=10_000) == 9_054_500
    errors = figure("wsgi-servers", "meinheld+hello", "error_per_s", connections=10_000)
    assert errors * 30 == pytest.approx(10_593, abs=0.01)


def test_the_figures_of_embedded_servers_are_the_published_ones():
    lost = {"success_ratio": 0.8142, "response_all_p99": 16_476_117_657, "response_all_max": 44_156_881_794}
    for metric, value in lost.items():
        assert figure("embedded-servers", "wsgiref+falcon-hello", metric) == value
    assert figure("embedded-servers", "twisted+flask-hello", "response_all_p95") == 10_066_975_748
    assert len(read_study("embedded-servers").originals) == 8 * 6


def test_the_figures_of_psgi_servers_are_the_published_ones():
    assert figure("psgi-servers", "starman-as-found+hello", "ok_per_s") == 6849.16
    assert figure("psgi-servers", "poe+hello", "ok_per_s") == 503.59


def test_the_memory_of_psgi_servers_is_that_of_a_master_and_of_each_of_five_workers():
    memory = {}
    for one in read_study("psgi-servers").originals:
        if one.metric == "rss_per_process":
            memory[one.subject.partition("-")[0], one.role] = one.value
    assert memory["starman", "worker"] == 8916 * 1024
    in_all = [memory[name, "master"] + 5 * memory[name, "worker"] for name in ("starman", "uwsgi")]
    assert [round(bytes_ / 2**20, 1) for bytes_ in in_all] == [52.7, 17.9]


def test_every_published_figure_of_processes_is_of_a_role_where_others_run_beside_them():
    for name in ("psgi-servers", "django-fastcgi"):
        of_processes = [one for one in read_study(name).originals if has_roles(one.metric)]
        assert of_processes
        assert all(one.role in ("master", "worker") for one in of_processes)


def test_the_figures_of_load_scripts_are_the_published_ones():
    reference = "reference-30ms+hello"
    assert figure("load-scripts", reference, "ok_per_s", "printed-threads", connections=200) == 368
    crossed = {"engine": "printed-asyncio-processes", "connections": 480}
    assert figure("load-scripts", reference, "ok_per_s", threads=6, **crossed) == 2402
    assert figure("load-scripts", reference, "ok_per_s", threads=4, **crossed) == 2409
    assert figure("load-scripts", reference, "machine_cpu_ratio", threads=4, **crossed) == 0.83
    # Of 15 runs the rate, and what they took of CPUs and memory of the whole machine.
    assert len(read_study("load-scripts").originals) == 45


def test_the_figures_of_django_fastcgi_are_the_published_ones():
    found = {}
    for one in read_study("django-fastcgi").originals:
        found.setdefault((one.subject.partition("+")[0], one.metric, one.load["connections"]), []).append(
            one.value
        )
    times = "duration_ns_per_request"
    assert found["nginx-wsgi-as-found", times, 20] == [14_200_000, 14_300_000]
    assert found["flup-prefork@nginx-many-clients", times, 500] == [15_500_000, 17_000_000]
    assert found["flup-prefork@nginx-many-clients", "processes_max", 500] == [40, 50]
    assert ("flup-threaded@nginx-many-clients", times, 500) not in found


def test_django_has_a_profile_with_two_to_four_workers_a_heavier_page_and_several_back_ends(plan_of, catalog):
    plan = plan_of("django-fastcgi", "sweep")
    grids = set(grid_words(plan.subjects()))
    assert grids == {
        f"settings of {name}: {shown}"
        for name, shown in (
            ("nginx-wsgi-as-found+django-postgres", "workers 2, 3, 4: 3 subjects"),
            ("nginx-wsgi-as-found+django-postgres-archive", "workers 2, 3, 4: 3 subjects"),
            (
                "uwsgi-two-workers@nginx-many-clients+django-postgres",
                "processes 2, 3, 4 x backends 1, 2: 6 subjects",
            ),
            ("uwsgi-two-workers@nginx-many-clients+django-postgres-archive", "processes 2, 3, 4: 3 subjects"),
            ("flup-threaded@nginx-many-clients+django-postgres", "backends 1, 2: 2 subjects"),
        )
    }
    assert {cell.workload.request.path for cell in plan.cells} == {"/", "/archive", "/letters"}
    assert {cell.load["connections"] for cell in plan.cells} == {20}
    assert extent_of(plan, catalog).seconds[1] <= 30 * 60


def test_psgi_has_a_profile_with_and_without_the_kernels_settings(plan_of):
    plan = plan_of("psgi-servers", "kernel")
    settings = {cell.subject.levels["sandbox.kernel"]: dict(cell.sandbox.sysctl) for cell in plan.cells}
    assert settings["as-found"] == {}
    assert settings["as-published"]["net.ipv4.ip_local_port_range"] == "1024\t65535"
    assert len(plan.subjects()) == 4


def test_what_a_profile_of_settings_adds_is_in_no_other_profile(plan_of):
    for name in STUDIES:
        for profile in PROFILES:
            assert not any(cell.subject.levels for cell in plan_of(name, profile).cells)


@pytest.mark.parametrize("name", ["tls-kept", "tls-handshakes"])
def test_the_studies_of_tls_are_pairs_with_it_and_without(name, plan_of, catalog):
    plan = plan_of(str(DOCS / f"{name}.toml"))
    assert plan.name == name
    found = {}
    for subject in plan.subjects():
        entry = (
            catalog.frontends[subject.frontend.entry] if subject.frontend else catalog.server(subject.server)
        )
        assert speaks_tls(entry)
        found.setdefault(without_levels(subject), []).append(*subject.levels.values())
    assert len(found) == 7
    assert all(keys == ["off", "ecdsa"] for keys in found.values())
    assert {cell.workload.request.keep_alive for cell in plan.cells} == {name == "tls-kept"}
    assert extent_of(plan, catalog).seconds[1] <= 15 * 60


def test_six_servers_are_compared_over_each_wire_with_and_without_tls_under_two_loads(plan_of, catalog):
    plan, full = plan_of("tls-http2"), plan_of("tls-http2", "full")
    wires = {}
    for subject in plan.subjects():
        wires.setdefault(without_levels(subject), set()).add(
            (subject.levels.get("wire"), subject.levels["tls"])
        )
    both = {(wire, tls) for wire in ("http", "http2") for tls in ("off", "ecdsa")}
    alone = {(None, "off"), (None, "ecdsa")}
    assert sorted(map(len, wires.values())) == [2, 2, 4, 4, 4, 4]
    assert all(found in (both, alone) for found in wires.values())
    multiplexed = {cell.subject.name for cell in plan.cells if cell.workload.streams > 1}
    assert multiplexed == {one.name for one in plan.subjects() if one.levels.get("wire") == "http2"}
    assert {cell.load["connections"] * cell.load["streams"] for cell in plan.cells} == {32}
    assert to_leave_out(plan.cells, catalog) == to_leave_out(full.cells, catalog) == {}
    assert (plan.blocks, full.blocks, plan.calibration is not None) == (5, 10, True)
    # As the command line makes it: without a pilot, which the profile does not want.
    assert extent_of(with_usual_pilot(plan), catalog).seconds[1] <= 25 * 60
    for claim in plan.claims:
        assert unmet(claim, planned(plan, Cpus(1, 1))) is None, claim.name


@pytest.mark.parametrize("file", sorted(DOCS.glob("workers-*.toml")), ids=lambda file: file.stem)
def test_the_studies_of_the_guide_are_grids_of_a_quarter_of_an_hour(file, plan_of, catalog):
    plan = plan_of(str(file))
    assert plan.name == file.stem
    assert {tuple(subject.levels) for subject in plan.subjects()} == {("workers", "threads")}
    assert len(plan.subjects()) == 12
    assert extent_of(plan, catalog).seconds[1] <= 15 * 60


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_each_claim_can_be_decided_on_two_cpus_in_some_profile(study):
    """Where server and generator share both, or have one each; one is about more than two cores."""
    catalog = load_catalog()
    plans = [
        plan_of_source(study, read_source(study), catalog, PlanOptions(profile=name))
        for name in read_study(study).document.profiles
    ]
    cpus = {True: Cpus(2, 2, 2), False: Cpus(1, 1, 2)}
    what = [planned(plan, cpus[plan.sandbox.share_cpus]) for plan in plans]
    undecided = {one.name for one in plans[0].claims if all(unmet(one, found) for found in what)}
    assert undecided == ({"more-processes-than-cores"} if study == "load-scripts" else set())

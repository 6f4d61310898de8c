"""What a generator on the server's CPUs can have taken: a bound, and never less than it used itself."""

import re
from dataclasses import replace
from math import inf

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.answer import bounded_by
from prony.figures.claim_parts import ClaimVerdict
from prony.figures.claims import evaluate
from prony.figures.generator import Costs, generator_share, loss_ratio, share_reach
from prony.figures.statistics.compare import Verdict
from prony.figures.summary import MoreOfGenerator, as_of_generator, figures, summarise_cell
from prony.model.limit import Limit, Limited, LimitKind
from prony.model.observation import Phase, ProcessRow
from prony.model.plan import Claim, ClaimKind, Needs
from prony.model.sandbox import Placement
from prony.model.trial import Fault, FaultKind, Invalid
from prony.reading.study import read_archive
from prony.report.brief import brief_report
from prony.report.formats.as_json import reading_json
from prony.report.formats.markdown import markdown
from prony.report.study import study_report
from recordings import with_parts
from shared_cpus import SLICES_S, Server, bounds

WORK_NS, SERVER_NS, GENERATOR_NS, MORE_NS = 100_000, 8_000, 6_000, 3_000


def test_the_loss_of_a_known_server_is_what_its_rate_falls_by():
    """Two CPUs, 100 us a page, each reply costs the server 3 us more beside a generator of 6 us."""
    apart = Costs(WORK_NS + SERVER_NS, GENERATOR_NS)
    together = Costs(WORK_NS + SERVER_NS + MORE_NS, GENERATOR_NS)
    ratio = loss_ratio(apart, together)
    alone, beside = (2e9 / cost for cost in (apart.server_ns, together.server_ns + GENERATOR_NS))
    counters = counted(beside * together.server_ns, beside * GENERATOR_NS, ratio)
    trial = replace(trial_of(0, 0, 100), counters=counters, placement=Placement((0, 1), (1,)))
    assert share_reach(generator_share(trial)) == pytest.approx(alone / beside)
    assert figures(trial).rate_reach == pytest.approx(alone / beside, rel=1e-3)


def on_two_cpus(threads, alone_percent, generator_percent, ratio):
    """A trial of 10 s whose server and generator share two CPUs: the server's threads, the CPU that its
    requests would cost without the generator, the generator's own, and what it takes for each of these.
    """
    more = (ratio - 1) * generator_percent
    used = (alone_percent + more) / 100
    rows = [ProcessRow(7, 1, "worker", "server", round(used * k * 1e9), 0, 1, 1, threads) for k in (0, 10)]
    samples = tuple(
        build.Sample(k * build.SECOND, Phase.WINDOW, (row,), 0, 0, 0)
        for k, row in zip((0, 10), rows, strict=True)
    )
    counters = counted(used * 1e10, generator_percent * 1e8, ratio)
    both = Placement((0, 1), (1,))
    return replace(trial_of(0, 0, 100), samples=samples, counters=counters, placement=both)


def test_a_server_of_one_thread_has_no_second_cpu_that_the_generator_could_have_taken():
    """It fills one CPU; the generator, on the other one, makes each request 5 % dearer."""
    trial = on_two_cpus(1, 95, 25, ratio=1.2)
    assert share_reach(generator_share(trial)) == pytest.approx(125 / 95)
    assert figures(trial).rate_reach == pytest.approx(100 / 95)
    assert figures(on_two_cpus(2, 95, 25, ratio=1.2)).rate_reach == pytest.approx(125 / 95)


def test_a_server_that_hardly_works_may_use_all_of_its_cpus():
    trial = on_two_cpus(1, 0.5, 0.1, ratio=1.0)
    assert figures(trial).rate_reach == pytest.approx(0.6 / 0.5)
    busy = {"limited": "yes", "evidence": [{"level": "yes", "kind": "busy", "share": 0.97}]}
    limited = replace(trial, recording=with_parts(trial.recording, generator=busy))
    assert figures(limited).rate_reach == pytest.approx(200 / 0.5)


def test_what_is_hidden_of_its_cpu_is_what_the_generator_took_or_its_threads_left():
    assert figures(on_two_cpus(2, 95, 25, ratio=1.2)).hidden_cpu_percent == pytest.approx(30)
    assert figures(on_two_cpus(1, 93, 25, ratio=1.2)).hidden_cpu_percent == pytest.approx(2)
    assert figures(on_two_cpus(9, 150, 40, ratio=1.2)).hidden_cpu_percent == pytest.approx(42)
    assert figures(on_two_cpus(9, 150, 0, ratio=1.2)).hidden_cpu_percent == 0


def test_a_limit_of_the_generator_hides_all_that_the_cpus_had_left():
    trial = on_two_cpus(9, 120, 25, ratio=1.0)
    busy = {"limited": "yes", "evidence": [{"level": "yes", "kind": "busy", "share": 0.97}]}
    limited = replace(trial, recording=with_parts(trial.recording, generator=busy))
    assert figures(limited).hidden_cpu_percent == pytest.approx(80)
    assert figures(limited).rate_reach == pytest.approx(200 / 120)


@pytest.mark.parametrize("what", ["strays", "asked", "unsampled", "unseen"])
def test_threads_that_are_not_all_known_bound_nothing(what):
    trial = on_two_cpus(1, 125 if what == "unseen" else 95, 25, ratio=1.2)
    if what == "strays":
        trial = replace(trial, facts=replace(trial.facts, strays=2))
    elif what != "unseen":
        more = {"asked.database.cpu_ns": 5} if what == "asked" else {"subject.cpu_ns": 12 * build.SECOND}
        trial = replace(trial, counters={**trial.counters, **more})
    assert figures(trial).rate_reach == pytest.approx(share_reach(generator_share(trial)))


def test_it_is_never_less_than_the_generator_used():
    assert loss_ratio(Costs(100, 12), Costs(80, 10)) == 1.0


def test_without_cpus_in_common_nothing_is_taken():
    trial = replace(trial_of(0, 0, 100), counters={"subject.cpu_ns": 10, "prony.cpu_ns": 5})
    assert generator_share(trial) == 0.0
    assert share_reach(0.96) is None


def counted(server_ns, generator_ns, ratio=1.0):
    taken_ns = round(ratio * generator_ns)
    return {
        "subject.cpu_ns": round(server_ns),
        "prony.cpu_ns": round(generator_ns),
        "generator.taken_ns": taken_ns,
    }


LOAD = build.Workload(build.ClosedLoop(4), build.DurationStop(build.SECOND))
OPEN = build.Workload(build.OpenLoop(500), build.DurationStop(build.SECOND))
NEEDS = Needs(server_cpus=2)
CLAIMS = (
    Claim("c1", "fast is faster", ClaimKind.HIGHEST, "ok_per_s", "fast+*", tolerance=0.05, needs=NEEDS),
    Claim(
        "c2", "slow carries less than 850 /s", ClaimKind.VALUE, "ok_per_s", "slow+*", high=850.0, needs=NEEDS
    ),
)


def trial_of(place, block, rate, load=LOAD):
    cell = build.Cell(place + 1, build.subject(("fast+x", "slow+x")[place]), load)
    return build.trial(cell, block, place, [1_000_000] * rate)


def shared(path, share, load=LOAD):
    """Return the reading of five blocks of two subjects, 1000/s and 800/s, of whose CPU time the generator
    took a share.
    """
    names = ("fast+x", "slow+x")
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(names))
    plan = build.Plan("study", "", "", "quick", cells, 5, 1, claims=CLAIMS)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(5):
            for k in range(len(cells)):
                trial = trial_of(k, block, 1000 - 200 * k + (block * (k + 2)) % 5, load)
                counters = counted((1 - share) * 1e9, share * 1e9)
                writer.append(
                    replace(trial, placement=Placement((0, 1), (1,), shared=True), counters=counters)
                )
        writer.finish(build.RunStatus.FINISHED)
    with open_archive(path) as archive:
        return read_archive(archive)


@pytest.mark.parametrize(("share", "verdict"), [(0.06, Verdict.LOWER), (0.25, Verdict.SHARED)])
def test_a_verdict_stands_that_what_was_taken_cannot_have_made(tmp_path, share, verdict):
    reading = shared(tmp_path / "a.prony", share)
    fast, slow = reading.cells
    assert (fast.at_least, fast.generator_share) == (True, pytest.approx(share))
    assert bounded_by(fast, slow, "ok_per_s").second == pytest.approx(1 / (1 - share))
    assert reading.groups[0].answer.comparisons["slow+x"].verdict is verdict


@pytest.mark.parametrize(("share", "verdict"), [(0.04, ClaimVerdict.HOLDS), (0.25, ClaimVerdict.CANNOT_TELL)])
def test_claims_that_need_two_cpus_are_judged_where_the_bound_leaves_them(tmp_path, share, verdict):
    reading = shared(tmp_path / "a.prony", share)
    assert [result.verdict for _, result in reading.claims] == [verdict, verdict]
    if verdict is ClaimVerdict.CANNOT_TELL:
        assert "the generator ran on its CPUs" in reading.claims[0][1].reason


def test_an_open_loop_that_is_kept_loses_nothing(tmp_path):
    assert [cell.at_least for cell in shared(tmp_path / "a.prony", 0.25, OPEN).cells] == [False, False]


def test_the_reports_say_for_how_many_cpus_it_holds_and_what_the_generator_took(tmp_path):
    reading = shared(tmp_path / "a.prony", 0.06)
    said = "and the generator on CPU 1 of them: it took up to 6.00 % of the CPU time of both"
    for report in (study_report(reading), brief_report(reading)):
        words = " ".join(re.sub(r"\[(\w+)\]\(#\w+\)", r"\1", markdown(report)).split())
        assert f"Server on CPUs 0, 1, {said}" in words
    (group,) = reading_json(reading)["groups"]
    assert [cell["generator_share"] for cell in group["cells"]] == [pytest.approx(0.06)] * 2


# --- simulated: servers beside a generator on their two CPUs, and with a CPU more for it --------------------

SERVERS = {
    "loop": (Server(1, 100e-6), 10),
    "processes": (Server(2, 100e-6), 10),
    "locked": (Server(8, 100e-6, lock=True), 16),
    "waiting": (Server(3, 100e-6, 2e-3), 12),
}


@pytest.mark.parametrize("name", list(SERVERS))
def test_no_simulated_server_lost_more_than_the_bound_says(name):
    server, connections = SERVERS[name]
    for truly, at_most in bounds(server, 25e-6, connections, SLICES_S[0], length_s=2.0):
        assert truly <= 1.02 * at_most
    # It says something: a server that fills both CPUs lost nearly as much.
    rate, _, cpu = bounds(server, 25e-6, connections, SLICES_S[0], length_s=2.0)
    if name == "processes":
        assert rate[0] > 1.25
        assert cpu[0] > 1.15


# --- the other way round: what a server takes from its generator ------------------------------------------


def beside_server(generator_percent, server_percent, ratio=1.0, **more):
    """A trial of 10 s whose generator shares two CPUs with its server; Prony itself uses 5 % of one."""
    counters = counted(server_percent * 1e8, (generator_percent + 5) * 1e8, ratio)
    trial = replace(
        on_two_cpus(1, server_percent, 0, ratio=1.0),
        counters=counters,
        placement=Placement((0, 1), (0, 1), True),
    )
    used = {"cpu_ns_per_request": None, "processes": {"cpu_percent": float(generator_percent)}}
    recording = with_parts(trial.recording, generator={"cpu_work_ns": None, **used})
    return figures(replace(trial, recording=recording, **more)).of_generator


def test_what_a_server_takes_from_its_generator_is_a_bound():
    found = beside_server(80, 20)
    assert (found.reach, found.cpu_percent) == (pytest.approx(100 / 80), pytest.approx(20))
    # Beside it a request costs the generator more.
    found = beside_server(80, 20, ratio=1.5)
    assert (found.reach, found.cpu_percent) == (pytest.approx(100 / 70), pytest.approx(20))


def test_it_is_no_more_than_the_cpus_had_left():
    found = beside_server(180, 60)
    assert (found.reach, found.cpu_percent) == (pytest.approx(200 / 180), pytest.approx(20))


def test_programs_that_disturbed_a_generator_may_have_taken_all_that_its_cpus_had_left():
    disturbed = {
        "outcome": Invalid("x"),
        "fault": Fault(FaultKind.OTHER_LOAD, share=0.1),
        "placement": Placement((0, 1), (2, 3)),
    }
    found = beside_server(100, 20, **disturbed)
    assert (found.reach, found.cpu_percent) == (pytest.approx(2.0), pytest.approx(100))


def test_a_generator_with_cpus_of_its_own_loses_nothing_to_its_server():
    trial = replace(trial_of(0, 0, 100), counters={"subject.cpu_ns": 10, "prony.cpu_ns": 5})
    assert figures(trial).of_generator == MoreOfGenerator()


def test_of_a_generator_its_own_limit_is_no_bound_but_its_server_on_its_cpus_is():
    made = [figures(trial_of(0, block, 1000 + block)) for block in range(5)]
    busy = Limit(LimitKind.BUSY, level=Limited.YES, share=0.97)
    alone = [replace(one, limited=busy, rate_reach=inf) for one in made]
    beside = [replace(one, of_generator=MoreOfGenerator(1.25, 20.0)) for one in alone]
    cell = build.Cell(1, build.subject("fast+x"), LOAD)
    assert summarise_cell(cell, alone).reach("ok_per_s") == inf
    own, shared = (as_of_generator(summarise_cell(cell, trials)) for trials in (alone, beside))
    assert (own.at_least, own.held_back, own.reach("ok_per_s")) == (False, False, 1.0)
    assert (shared.at_least, shared.held_back) == (True, False)
    assert shared.reach("ok_per_s") == pytest.approx(1.25)
    used = shared.known("generator_cpu_percent").mean
    assert shared.reach("generator_cpu_percent") == pytest.approx(1 + 20 / used)
    # What a request costs is the same on CPUs of its own.
    assert shared.reach("generator_ok_per_cpu_s") == 1.0


@pytest.mark.parametrize(("taken", "verdict"), [(5.0, ClaimVerdict.HOLDS), (20.0, ClaimVerdict.CANNOT_TELL)])
def test_a_generators_cpu_is_bounded_by_what_its_server_took(taken, verdict):
    made = [figures(trial_of(0, block, 1000)) for block in range(5)]
    trials = [
        replace(
            one,
            of_generator=MoreOfGenerator(1.0 + taken / 100, taken),
            metrics={**one.metrics, "generator_cpu_percent": 100.0 + one.block % 2},
            placement=Placement((0, 1), (0, 1), True),
        )
        for one in made
    ]
    cell = as_of_generator(summarise_cell(build.Cell(1, build.subject("fast+x"), LOAD), trials))
    asked = Claim(*("c", "one core", ClaimKind.SINGLE_CORE, "generator_cpu_percent", "fast+*"), tolerance=0.1)
    found = evaluate(asked, [cell])
    assert found.verdict is verdict
    if verdict is ClaimVerdict.CANNOT_TELL:
        assert found.reason.endswith("the server ran on the generator's CPUs, so the figure is a bound")

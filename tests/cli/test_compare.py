"""`prony compare`: what changed, how sure that is, and the exit status that CI goes by."""

import json
import os
import re
from dataclasses import replace

import pytest

from cli import test_report_sessions
from golden import build
from made_pages import made_page
from prony.core.metrics import METRICS
from prony.core.users import resolve_user
from prony.model.facts import Fingerprint, Floor
from prony.model.plan import Cell, Plan
from prony.model.trial import Failed
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.study.calibration import keep_floors

STEPS = (0, 3, -3, 2, -2, 1, -1, 4, -4, 0)


def archive(
    path,
    replies,
    blocks=6,
    *,
    fingerprint=build.FINGERPRINT,
    loads=(10,),
    duration_s=2,
    failing=("", 0),
    **kwargs,
):
    """An archive of subjects by name with so many replies a trial, within a fifth of a per cent.

    `failing`: a subject that dies in so many of the blocks.
    """
    fails = {(failing[0], block) for block in range(failing[1])}
    cells = [
        Cell(
            number,
            build.subject(name),
            Workload(ClosedLoop(load), DurationStop(duration_s * build.SECOND)),
        )
        for number, (name, load) in enumerate((name, load) for name in replies for load in loads)
    ]
    plan = Plan("shop", "Shop", "", "quick", tuple(cells), blocks, 1)
    with build.create(path, plan, fingerprint) as writer:
        for block in range(blocks):
            for place, cell in enumerate(cells):
                count = replies[cell.subject.name] + STEPS[(block + place) % 10]
                if (cell.subject.name, block) in fails:
                    writer.append(build.trial(cell, block, place, [], outcome=Failed("load", "it died")))
                    continue
                writer.append(build.trial(cell, block, place, [1_000_000] * count, **kwargs))
        writer.finish(build.RunStatus.FINISHED)
    return path


@pytest.fixture
def pair(tmp_path):
    def make(before, after, blocks=6, **kwargs):
        first = archive(tmp_path / "before.prony", {"a+hello": before}, blocks)
        return first, archive(tmp_path / "after.prony", {"a+hello": after}, blocks, **kwargs)

    return make


def test_two_subjects_of_a_study_are_compared_by_block(said, tmp_path):
    file = archive(tmp_path / "study.prony", {"a+hello": 2000, "b+hello": 3000})
    done = said("compare", file, "a+hello", "b+hello")
    assert done.status == 0
    assert "b+hello against a+hello" in done.out
    assert "Paired by block" in done.out
    assert "intervals are of differences within one session." in " ".join(done.out.split())
    assert "b+hello is better than a+hello in valid replies per second." in done.out
    line = next(line for line in done.out.splitlines() if line.startswith("valid replies per second"))
    assert "+50.0 %" in line and "higher" in line
    assert "Screening" in done.out


def test_a_pattern_may_stand_for_one_subject(said, tmp_path):
    file = archive(tmp_path / "study.prony", {"a+hello": 2000, "b+hello": 3000})
    assert "b+hello against a+hello" in said("compare", file, "a*", "b*").out
    done = said("compare", file, "a*", "*")
    assert (done.status, "`*` matches a+hello, b+hello of" in done.err) == (2, True)
    done = said("compare", file, "a*", "z")
    assert (done.status, "matches no subject of" in done.err) == (2, True)


def test_two_archives_are_unpaired_and_say_so(said, pair):
    done = said("compare", *pair(2000, 2100))
    assert done.status == 0
    assert "unpaired: includes machine drift" in done.out
    assert "Welch on logarithms, unpaired" in done.out


def test_every_load_has_its_own_table(said, tmp_path):
    file = archive(tmp_path / "study.prony", {"a+hello": 2000, "b+hello": 3000}, loads=(10, 100))
    out = said("compare", file, "a*", "b*").out
    assert "Closed loop, 10 connections" in out and "Closed loop, 100 connections" in out


def test_as_data_all_is_there(said, pair):
    found = json.loads(said("compare", *pair(2000, 2100), "--json", "--fail-if", "rps < -5%").out)
    (load,) = found["loads"]
    assert (found["paired"], found["remark"]) == (False, "unpaired: includes machine drift")
    compared = load["metrics"]["ok_per_s"]
    assert compared["family"] == "primary"
    assert compared["comparison"]["verdict"] == "higher"
    assert compared["comparison"]["effect"] == pytest.approx(0.05, abs=0.001)
    assert found["limits"][0]["shown"] is False


@pytest.mark.parametrize(
    ("after", "blocks", "status"),
    [(2000, 6, 0), (1960, 6, 0), (1800, 6, 1), (1900, 6, 3), (1800, 4, 3)],
)
def test_a_change_that_must_not_be_decides_the_status(said, pair, after, blocks, status):
    done = said("compare", *pair(2000, after, blocks), "--fail-if", "rps < -5%")
    assert done.status == status
    words = {0: "shown to be within it", 1: "shown to be beyond it", 3: "not shown either way"}
    assert (words[status] if blocks > 4 else "4 blocks are too few") in done.out


def test_one_limit_that_is_passed_is_enough(said, pair):
    files = pair(2000, 1800)
    assert said("compare", *files, "--fail-if", "memory > 5%", "--fail-if", "rps < -5%").status == 1


def test_a_speed_that_one_does_not_have_is_told_among_what_was_asked(said, tmp_path):
    file = archive(tmp_path / "study.prony", {"a+hello": 2000, "b+hello": 3000}, failing=("b+hello", 2))
    (load,) = json.loads(said("compare", file, "a+hello", "b+hello", "--json").out)["loads"]
    speed, memory = load["metrics"]["ok_per_s"], load["metrics"]["pss_end"]
    assert (speed["family"], memory["family"]) == ("primary", "screening")
    assert (speed["comparison"], memory["comparison"]["blocks"]) == (None, 4)
    assert "2 of 6 trials did not count" in speed["reason"]


def test_what_both_do_not_have_is_not_shown(said, pair):
    done = said("compare", *pair(2000, 1800, errors={"reset": 100}), "--fail-if", "rps < -5%")
    assert (done.status, "speed does not qualify: its requests fail" in done.out) == (3, True)


def test_a_limit_that_cannot_be_read_is_a_misuse(said, pair):
    done = said("compare", *pair(2000, 2000), "--fail-if", "rps = 5")
    assert (done.status, "`--fail-if`: `rps = 5` is not a limit of a change" in done.err) == (2, True)


def test_machines_that_differ_in_what_matters_are_refused_unless_forced(said, pair):
    other = Fingerprint({**build.FINGERPRINT.free, "kernel": {"release": "6.6.0"}})
    files = pair(2000, 2100, fingerprint=other)
    done = said("compare", *files)
    assert (done.status, "kernel: 6.1.0-18-amd64 and 6.6.0" in done.err) == (2, True)
    forced = said("compare", *files, "--force")
    assert forced.status == 0
    assert "Compared by force although they differ: kernel" in forced.out


def test_loads_that_differ_beside_their_size_are_refused(said, pair):
    done = said("compare", *pair(2000, 4000, duration_s=4))
    assert (done.status, "the window of what was measured" in done.err) == (2, True)


def test_nothing_in_common_is_a_misuse(said, pair):
    done = said("compare", *pair(2000, 2000, loads=(99,)))
    assert (done.status, "have no load in common" in done.err) == (2, True)


@pytest.mark.parametrize("others", [("a", "b", "c"), ()])
def test_one_archive_or_two_subjects_are_expected(said, pair, others):
    done = said("compare", pair(2000, 2000)[0], *others)
    assert done.status == 2
    if others:
        assert "expected another archive, or two subjects of this one" in done.err


def test_what_is_no_archive_is_told(said, tmp_path):
    text = tmp_path / "text.prony"
    text.write_text("no archive")
    assert said("compare", text, text).status == 3


def test_noise_floors_that_a_machine_keeps_change_no_verdict(said, pair, tmp_path, monkeypatch):
    files, floors = pair(2000, 2100), [Floor("ok_per_s", "closed", 5, 0.08)]
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    before = said("compare", *files, "--json").out
    (load,) = json.loads(before)["loads"]
    assert load["metrics"]["ok_per_s"]["comparison"]["verdict"] == "higher"
    keep_floors(resolve_user(), build.FINGERPRINT, floors)
    assert said("compare", *files, "--json").out == before


def test_keeping_noise_floors_leaves_the_cache_to_its_owner(tmp_path, monkeypatch):
    # What servers run as must not be able to move away what Prony trusts.
    monkeypatch.setenv("PRONY_CACHE", str(tmp_path / "cache"))
    keep_floors(resolve_user(), build.FINGERPRINT, [Floor("ok_per_s", "closed", 5, 0.01)])
    assert (tmp_path / "cache").stat().st_uid == os.geteuid()


def keys(value):
    """Every key in it, but names of metrics."""
    match value:
        case dict():
            inner = {key for one in value.values() for key in keys(one)}
            return inner | {key for key in value if key not in METRICS}
        case list():
            return {key for one in value for key in keys(one)}
    return set()


def test_the_reference_names_every_key(said, pair):
    found = json.loads(said("compare", *pair(2000, 2100), "--json", "--fail-if", "rps < -5%").out)
    assert keys(found) <= set(re.findall(r"`(\w+)`", made_page("compare-json.md")))


# --- several sessions -------------------------------------------------------------------------------------


def several(path, sessions, blocks=10):
    """A study of so many planned sessions, in which the second subject is half as fast."""

    def planned(plan):
        return replace(plan, design=replace(plan.design, sessions=sessions, pause_ns=build.SECOND))

    return test_report_sessions.session(path, 0, change=planned, blocks=blocks)


def speed(said, *arguments):
    (load,) = json.loads(said("compare", *arguments, "--json").out)["loads"]
    return load["metrics"]["ok_per_s"]


def test_two_subjects_over_two_sessions_have_a_range_and_no_verdict(said, tmp_path):
    file = several(tmp_path / "a.prony", 2)
    found = speed(said, file, "bjoern*", "gunicorn*")["comparison"]
    assert (found["verdict"], found["blocks"]) == ("too few sessions for a verdict", 2)
    assert (found["low"], found["high"], found["p_value"]) == (None, None, None)
    assert found["least"] < found["effect"] < found["most"] < -0.4
    done = said("compare", file, "bjoern*", "gunicorn*", "--fail-if", "rps < -5%")
    assert (done.status, "2 sessions are too few" in done.out) == (3, True)
    assert "Each of several sessions (a pause, another day or machine) counts once" in " ".join(
        done.out.split()
    )


def test_over_five_they_have_an_interval_of_five(said, tmp_path):
    found = speed(said, several(tmp_path / "a.prony", 5), "bjoern*", "gunicorn*")["comparison"]
    assert (found["verdict"], found["blocks"]) == ("lower", 5)
    assert found["low"] < found["effect"] < found["high"] < -0.4
    assert found["least"] < found["effect"] < found["most"]


def test_an_archive_of_one_session_counts_once_beside_one_of_several(said, tmp_path):
    files = several(tmp_path / "a.prony", 1), several(tmp_path / "b.prony", 5)
    found = json.loads(said("compare", *files, "--json").out)
    assert found["by_session"] is True
    rows = [load["metrics"]["ok_per_s"] for load in found["loads"]]
    assert {row["reason"] for row in rows} == {"1 and 5 sessions: no interval"}


def test_limits_are_written_as_tests_of_junit_and_all_as_markdown(said, tmp_path):
    from xml.etree import ElementTree

    before = archive(tmp_path / "a.prony", {"a+hello": 1000})
    after = archive(tmp_path / "b.prony", {"a+hello": 800})
    limits = [word for limit in ("rps < -5%", "rps > +5%", "cpu > 5%") for word in ("--fail-if", limit)]
    junit, page = tmp_path / "limits.xml", tmp_path / "change.md"
    done = said("compare", before, after, *limits, "--junit", junit, "--markdown", page)
    assert done.status == 1, done.err
    suite = ElementTree.parse(junit).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "2",
        "errors": "0",
    }
    found = {case.get("name"): [one.tag for one in case] for case in suite}
    assert found == {"rps < -5%": ["failure"], "rps > +5%": [], "cpu > 5%": ["failure"]}
    few = archive(tmp_path / "few.prony", {"a+hello": 800}, blocks=3)
    assert said("compare", before, few, *limits[:2], "--junit", junit).status == 3
    assert [one.tag for one in ElementTree.parse(junit).getroot()[0]] == ["error"]
    assert page.read_text().startswith("# ") and "rps &lt; -5%" in page.read_text()


def test_junit_without_a_limit_and_two_outputs_to_one_place_are_refused(said, tmp_path):
    files = archive(tmp_path / "a.prony", {"a+hello": 9}), archive(tmp_path / "b.prony", {"a+hello": 9})
    assert "expected at least one of them" in said("compare", *files, "--junit", "x.xml").err
    assert (
        "something else goes to standard output" in said("compare", *files, "--json", "--markdown", "-").err
    )

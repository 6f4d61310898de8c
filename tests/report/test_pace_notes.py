"""What a report says of windows whose pace was not steady, and of windows too short to see it."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import open_archive
from prony.figures.claim_parts import ClaimVerdict
from prony.figures.steady_state import Kind
from prony.model.facts import RunFacts
from prony.model.plan import Claim, ClaimKind
from prony.reading.study import read_archive, read_over, sessions_in
from prony.report.formats.as_json import reading_json
from prony.report.forms import about_percent, percent
from prony.report.sections.brief_trust import trust_lines
from prony.report.sections.checks import pace_notes
from recordings import with_parts

RISING = [600, 800, 900, 1000, 1050, 1100]
FLAT = [1000] * 6


def planted(path, pace, blocks=5, forced=False, margin=0.02):
    """Write blocks of two subjects under one load; the first's seconds have this pace."""
    load = build.Workload(build.ClosedLoop(4), build.DurationStop(len(pace) * build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(("a+x", "b+x")))
    plan = build.Plan("study", "", "", "quick", cells, blocks, 1)
    plan = replace(plan, design=replace(plan.design, margin=margin))
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(blocks):
            for k, cell in enumerate(cells):
                shape = pace if not k else FLAT[: len(pace)]
                counts = [n + 3 * ((block * (at + 2) + k) % 4) for at, n in enumerate(shape)]
                trial = build.trial(cell, block, k, [1_000_000] * sum(counts))
                rows = [{**SECOND, "second": at, "scheduled": n, "ok": n} for at, n in enumerate(counts)]
                writer.append(replace(trial, recording=with_parts(trial.recording, series=rows)))
        writer.record_facts(RunFacts(forced=forced))
        writer.finish(build.RunStatus.FINISHED)
    return path


SECOND = {"failed": 0, "body_bytes": 0, "latency": None}


def read(path, **options):
    with open_archive(path) as archive:
        return read_archive(archive, **options)


@pytest.mark.parametrize(
    ("pace", "kind", "said"),
    [
        (RISING, Kind.WARM_UP, "the warm-up spills over into the window: a longer warm-up would show better"),
        (RISING[::-1], Kind.SLOWDOWN, "it became slower during the window: a longer window would show worse"),
        (FLAT[:4] + [500] * 2, Kind.NONE, "no steady state within the window"),
    ],
)
def test_what_was_not_steady_is_named_with_what_that_does_to_its_figure(tmp_path, pace, kind, said):
    reading = read(planted(tmp_path / "a.prony", pace))
    found = reading.cells[0].steadiness
    (note,) = pace_notes(reading)
    assert found.kind is kind
    assert str(note).startswith(f"a+x (mean rate {100 * found.bias:+.1f} % off its end): {said}")
    assert str(note).endswith("(no verdict counts it without --force).")


def test_what_was_not_steady_enters_no_verdict(tmp_path):
    reading = read(planted(tmp_path / "a.prony", RISING))
    assert [cell.unqualified for cell in reading.cells] == ["its pace was not steady", None]
    assert reading.groups[0].answer.comparisons == {}


@pytest.mark.parametrize(("margin", "unqualified"), [(0.02, "its pace was not steady"), (0.05, None)])
def test_a_change_below_the_margin_of_the_study_is_of_no_interest(tmp_path, margin, unqualified):
    # By 4 % from the third second on.
    reading = read(planted(tmp_path / "a.prony", [980, 980, 1020, 1020, 1020, 1020], margin=margin))
    assert reading.cells[0].unqualified == unqualified


@pytest.mark.parametrize(("forced", "options"), [(True, {}), (False, {"takes_unsteady": True})])
def test_by_force_it_enters_verdicts_and_the_report_says_so(tmp_path, forced, options):
    reading = read(planted(tmp_path / "a.prony", RISING, forced=forced), **options)
    assert set(reading.groups[0].answer.comparisons) == {"a+x"}
    (note,) = pace_notes(reading)
    assert str(note).endswith("(counted, by force).")


@pytest.mark.parametrize(
    ("forced", "verdict"),
    [((True,) * 5, ClaimVerdict.HOLDS), ((True, *(False,) * 4), ClaimVerdict.CANNOT_TELL)],
)
def test_over_archives_it_enters_verdicts_where_all_were_measured_by_force(tmp_path, forced, verdict):
    faster = Claim("c", "b is faster than a", ClaimKind.HIGHEST, "ok_per_s", "b+*", "a+*")
    sides = []
    for k, by_force in enumerate(forced):
        with open_archive(planted(tmp_path / f"{k}.prony", RISING, forced=by_force)) as archive:
            plan = replace(archive.plan(), claims=(faster,))
            sides += sessions_in(read_archive(archive, plan=plan), f"{k}.prony")
    (claim,) = read_over(sides).claims
    assert claim.over.verdict is verdict


def test_a_steady_study_of_long_windows_has_no_note(tmp_path):
    assert list(pace_notes(read(planted(tmp_path / "a.prony", FLAT)))) == []


def test_short_windows_say_the_smallest_change_that_they_could_show(tmp_path):
    reading = read(planted(tmp_path / "a.prony", FLAT[:3]))
    (note,) = pace_notes(reading)
    most = max(cell.steadiness.visible for cell in reading.cells)
    assert str(note).startswith(f"In windows of 3 seconds only a change of {percent(most)} or more is seen")


@pytest.mark.parametrize("seconds", [3, 6])
def test_the_brief_says_which_change_it_would_have_seen(tmp_path, seconds):
    reading = read(planted(tmp_path / "a.prony", FLAT[:seconds]))
    said = " ".join(str(line.sentence) for line in trust_lines(reading))
    most = max(cell.steadiness.visible for cell in reading.cells)
    assert (
        f"no subject was seen to change its pace (a change of {about_percent(most)} would have been)" in said
    )


@pytest.mark.parametrize(
    ("blocks", "seconds", "reason"),
    [
        (5, 2, "stalls of 5 trials of 2 seconds often meet in one second by chance"),
        (2, 6, "2 trials whose rate is known; expected 3"),
        (5, 1, "the window has 1 whole seconds; "),
    ],
)
def test_where_it_is_not_testable_one_note_says_why(tmp_path, blocks, seconds, reason):
    (note,) = pace_notes(read(planted(tmp_path / "a.prony", FLAT[:seconds], blocks)))
    said = "Whether the pace was steady within the windows is not testable: "
    assert str(note).startswith(said + reason)


def test_the_json_has_the_judgement(tmp_path):
    cells = reading_json(read(planted(tmp_path / "a.prony", RISING)))["groups"][0]["cells"]
    found = cells[0]["steadiness"]
    assert (found["kind"], found["measure"], found["trials"], found["seconds"]) == ("warm-up", "rate", 5, 6)
    assert cells[1]["steadiness"]["kind"] == "flat"


def losing(path, allow_errors=0.5, left=50):
    """Write five blocks of an open loop that answers all requests of its first four seconds, and about
    ``left`` of 100 in the last two, and give its reading.
    """
    load = build.Workload(build.OpenLoop(100), build.DurationStop(6 * build.SECOND))
    cell = build.Cell(1, build.subject("a+x"), load)
    plan = build.Plan("study", "", "", "quick", (cell,), 5, 1)
    plan = replace(plan, design=replace(plan.design, allow_errors=allow_errors))
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for block in range(5):
            shares = [100 if at < 4 else left and left + block for at in range(6)]
            errors = {"bad_status": {"503": 600 - sum(shares)}}
            trial = build.trial(cell, block, 0, [1_000_000] * sum(shares), errors=errors)
            rows = [
                {**SECOND, "second": at, "scheduled": 100, "ok": n, "due_ok": n}
                for at, n in enumerate(shares)
            ]
            writer.append(replace(trial, recording=with_parts(trial.recording, series=rows)))
        writer.record_facts(RunFacts())
        writer.finish(build.RunStatus.FINISHED)
    return read(path)


@pytest.mark.parametrize(
    ("allow_errors", "heed"),
    [(0.5, "no verdict counts it without --force"), (0.001, "no verdict counts it")],
)
def test_who_loses_more_and_more_of_its_requests_is_named(tmp_path, allow_errors, heed):
    (note,) = pace_notes(losing(tmp_path / "a.prony", allow_errors))
    assert "a+x (mean share " in str(note)
    said = "it lost more or fewer requests late in the window: a longer one may show other figures"
    assert f"{said} ({heed})" in str(note)


def test_who_answers_nothing_at_the_end_is_not_said_to_be_off_by_nothing(tmp_path):
    reading = losing(tmp_path / "a.prony", left=0)
    (note,) = pace_notes(reading)
    assert str(note).startswith("a+x (it answered nothing at its end): it lost more")
    assert reading_json(reading)["groups"][0]["cells"][0]["steadiness"]["bias"] is None


@pytest.mark.parametrize(
    ("allow_errors", "kept_out"), [(0.5, ", so in no verdict without --force"), (0.001, "")]
)
def test_the_brief_says_who_was_not_steady_and_whether_that_keeps_it_out(tmp_path, allow_errors, kept_out):
    lines = trust_lines(losing(tmp_path / "a.prony", allow_errors))
    said = " ".join(str(line.sentence) for line in lines)
    assert f"not steady{kept_out}: a+x" in said

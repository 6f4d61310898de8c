"""The answer in words: what to use, by how much it is better, and which settings did nothing."""

from dataclasses import replace
from html import unescape

from prony.analysis.compare import compare
from prony.faces.markdown import markdown
from prony.tune.answer import About, answer_document, front, knob_words
from prony.tune.race import Move, Recommendation, TuneWish
from prony.survey.recipes import recipe_of
from prony.tune.space import Candidate, Knobs, Machine

OLD, NEW = Candidate("gunicorn", 1, 1), Candidate("gunicorn", 2, 8)
WISH = TuneWish((Knobs(OLD, "workers", "threads"),), OLD, Machine(2), 150)
ABOUT = About(
    app="shop:app",
    load="closed loop, 64 connections, 3 s, GET /",
    origin="its default",
    start="gunicorn --workers 2 --threads 8 shop:app",
    recipe=recipe_of(NEW, "shop:app", "wsgi"),
    folder="/srv/shop",
    limits="Limited by its CPU",
    remarks=("The server had 2 CPUs.",),
)


def rows(rate, p99=0.05, memory=5e7, count=6):
    wobble = (0.99, 1.0, 1.01, 1.0, 0.99, 1.01)
    return {
        k: {"ok_per_s": rate * wobble[k], "service_all_p99": p99 * 1e9, "pss_end": memory, "error_ratio": 0.0}
        for k in range(count)
    }


def answer(ratios, advice, **changed):
    fresh = {OLD: rows(100), NEW: rows(150)}
    return replace(Recommendation(advice, OLD, NEW, compare(ratios), fresh, fresh), **changed)


def said(found, wish=WISH, about=ABOUT):
    """Return the answer as text: Markdown without its escapes."""
    return unescape(
        " ".join(markdown(answer_document(found, wish, about), with_terms=False).split())
    ).replace("\\", "")


def test_a_gain_is_said_with_its_interval_and_its_blocks():
    words = said(answer([0.40, 0.41, 0.40, 0.42, 0.40, 0.41], Move.CHANGE))
    assert "Use gunicorn, 2 workers, 8 threads." in words
    assert "Over gunicorn, 1 worker, 1 thread (its default): requests/s +50.2 %" in words
    assert "(95 % interval +48.8 % to +51.6 %)" in words
    assert "in 6 fresh pairs of trials" in words
    assert "It carries 150/s (149/s to 151/s) at a p99 of 50.0 ms in 47.7 MiB of memory" in words
    assert "gunicorn --workers 2 --threads 8 shop:app" in words


def test_a_large_gain_is_a_factor():
    assert "requests/s x 7.39 (95 % interval x " in said(answer([2.0, 2.01, 1.99, 2.0, 2.0], Move.CHANGE))


def test_no_gain_says_to_keep_what_there_is_and_how_the_best_other_compares():
    words = said(answer([0.01, -0.01, 0.0, 0.02, -0.02], Move.KEEP))
    assert "No gain shown: keep gunicorn, 1 worker, 1 thread (its default)." in words
    assert "The best other, gunicorn, 2 workers, 8 threads: requests/s" in words
    assert "It carries 100/s" in words


def test_where_nothing_meets_the_conditions_no_command_is_advised():
    words = said(answer([0.0] * 5, Move.NOTHING, broken=("p99 < 5ms",)), about=replace(ABOUT, recipe=None))
    assert "Nothing that was tried is shown to meet all of it." in words
    assert "is not shown to meet p99 < 5ms" in words
    assert "gunicorn --workers" not in words
    assert "gunicorn, 1 worker, 1 thread carries 100/s" in words


def test_less_cpu_is_said_as_less():
    wish = replace(WISH, metric="cpu_ns_per_request", higher_is_better=False)
    words = said(answer([0.22, 0.23, 0.22, 0.24, 0.23], Move.CHANGE), wish)
    assert "CPU time a request -20.4 % (95 % interval -21.4 % to -19.4 %)" in words


def test_the_front_has_nobody_that_another_beats_in_all():
    tall, low = Candidate("gunicorn", 4, 1), Candidate("gunicorn", 3, 1)
    found = front(
        {OLD: rows(100, memory=3e7), NEW: rows(150), tall: rows(140, memory=9e7), low: rows(150, p99=0.06)}
    )
    assert [one.candidate for one in found] == [NEW, OLD]


def test_a_latency_that_some_lack_gives_way_to_one_that_all_have():
    lacking = {k: {"ok_per_s": 1.0, "service_all_p50": 1e6, "pss_end": 1e7} for k in range(6)}
    both = {k: {**row, "service_all_p50": 2e6} for k, row in rows(100).items()}
    assert {one.latency_ns for one in front({OLD: lacking, NEW: both})} == {1e6, 2e6}
    assert "p50" in said(answer([0.4] * 5, Move.CHANGE, searched={OLD: lacking, NEW: both}))


def searched(**rates):
    """The trials of candidates, `w2t4=100`."""
    found = {}
    for name, rate in rates.items():
        workers, threads = map(int, name.removeprefix("w").split("t"))
        found[Candidate("gunicorn", workers, threads)] = rows(rate)
    return answer([0.4] * 5, Move.CHANGE, searched=found)


def test_a_setting_that_changed_nothing_is_named_and_one_that_did_with_how_much():
    found = searched(w1t1=100, w1t8=100, w2t1=200, w2t8=200)
    assert knob_words(found, WISH, "threads") == "threads 1, 8: did nothing, to within 5 %"
    assert knob_words(found, WISH, "workers").startswith("workers 1 to 2: requests/s +100 %, at ")


def test_a_setting_that_was_never_varied_alone_is_not_spoken_of():
    assert knob_words(searched(w1t1=100, w2t8=200), WISH, "threads") == ""


def test_too_few_trials_show_no_difference_and_do_not_say_that_there_is_none():
    few = {OLD: rows(100, count=2), Candidate("gunicorn", 1, 8): rows(103, count=2)}
    few[OLD][1]["ok_per_s"] = 120.0
    assert knob_words(answer([0.4] * 5, Move.KEEP, searched=few), WISH, "threads") == (
        "threads 1, 8: no difference is shown"
    )

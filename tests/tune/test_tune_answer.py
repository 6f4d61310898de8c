"""The answer in words: what to use, by how much it is better, and which settings did nothing."""

import json
import re
from dataclasses import replace
from html import unescape
from math import exp
from random import Random

import pytest

from prony.catalog.discover.recipes import recipe_of
from prony.model.facts import FoundRate
from prony.model.json_codec import decode
from prony.report.formats.as_json import document_json
from prony.report.formats.markdown import markdown
from prony.report.tune import answer_document, knob_words
from prony.tune.race import Move, Recommendation, Stage, StageName, TuneWish, gain_of
from prony.tune.reading import About, TuneReading, knob_effect, tune_reading
from prony.tune.space import Candidate, Knobs, Machine

OLD, NEW = Candidate("gunicorn", 1, 1), Candidate("gunicorn", 2, 8)
WISH = TuneWish((Knobs(OLD, "workers", "threads"),), OLD, Machine(2), 150)
ABOUT = About(
    app="shop:app",
    load="closed loop, 64 connections, 3 s, GET /",
    origin="its default",
    start="gunicorn --workers 2 --threads 8 shop:app",
    forms=dict(recipe_of(NEW, "shop:app", "wsgi").forms("/srv/shop")),
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
    return replace(Recommendation(advice, OLD, NEW, gain_of(ratios), fresh, fresh), **changed)


def said(found, wish=WISH, about=ABOUT):
    """Return the answer as text: Markdown without its escapes."""
    document = answer_document(tune_reading(found, wish, about))
    return unescape(" ".join(markdown(document, with_terms=False).split())).replace("\\", "")


def test_a_gain_is_said_with_its_interval_and_its_blocks():
    words = said(answer([0.40, 0.41, 0.40, 0.42, 0.40, 0.41], Move.CHANGE))
    assert "Use gunicorn, 2 workers, 8 threads." in words
    assert "Over gunicorn, 1 worker, 1 thread (its default): requests/s +50.2 %" in words
    assert "(95 % interval +48.9 % to +51.5 %)" in words
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


@pytest.mark.parametrize(("metric", "change"), [("ok_per_s", "requests/s +0.5 %"), ("pss_end", "-0.5 %")])
def test_a_gain_that_is_too_little_to_change_a_command_for_is_said_as_that(metric, change):
    wish = replace(WISH, metric=metric, higher_is_better=metric == "ok_per_s")
    words = said(answer([0.005, 0.006, 0.004, 0.005, 0.006], Move.KEEP), wish)
    assert (
        "Less than 2 % of gain is shown, too little to change a command for: keep gunicorn, 1 worker, 1 "
        "thread (its default). The best other, gunicorn, 2 workers, 8 threads: " in words
    )
    assert f"{change} (95 % interval " in words
    assert "No gain shown" in said(answer([0.005, -0.006, 0.004], Move.KEEP), wish)


def test_a_gain_that_may_not_be_used_says_why_and_memory_is_no_condition_of_the_highest_rate():
    found = answer([0.40, 0.41, 0.40, 0.42, 0.40], Move.KEEP, unfit=("p99 < 40ms",))
    words = said(found)
    assert "No gain that may be used: keep gunicorn, 1 worker, 1 thread (its default)." in words
    assert "in 5 fresh pairs of trials; it is not shown to meet p99 < 40ms." in words


def test_where_nothing_meets_the_conditions_no_command_is_advised():
    words = said(answer([0.0] * 5, Move.NOTHING, broken=("p99 < 5ms",)), about=replace(ABOUT, forms={}))
    assert "Nothing that was tried is shown to meet all of it." in words
    assert "is not shown to meet p99 < 5ms" in words
    assert "gunicorn --workers" not in words
    assert "gunicorn, 1 worker, 1 thread carries 100/s" in words


def test_less_cpu_is_said_as_less():
    wish = replace(WISH, metric="cpu_ns_per_request", higher_is_better=False)
    words = said(answer([0.22, 0.23, 0.22, 0.24, 0.23], Move.CHANGE), wish)
    assert "CPU time a request -20.4 % (95 % interval -21.2 % to -19.6 %)" in words


def on_front(trials):
    found = tune_reading(answer([0.4] * 5, Move.CHANGE, searched=trials), WISH, ABOUT).searched
    return {one.setting: one for one in found if one.on_front}


def test_the_front_has_nobody_that_another_beats_in_all():
    tall, low = Candidate("gunicorn", 4, 1), Candidate("gunicorn", 3, 1)
    trials = {
        OLD: rows(100, memory=3e7),
        NEW: rows(150),
        tall: rows(140, memory=9e7),
        low: rows(150, p99=0.06),
    }
    assert set(on_front(trials)) == {NEW.words, OLD.words}


def test_a_latency_that_some_lack_gives_way_to_one_that_all_have():
    lacking = {k: {"ok_per_s": 1.0, "service_all_p50": 1e6, "pss_end": 1e7} for k in range(6)}
    both = {k: {**row, "service_all_p50": 2e6} for k, row in rows(100).items()}
    trials = {OLD: lacking, NEW: both}
    found = answer([0.4] * 5, Move.CHANGE, searched=trials, fresh=trials)
    assert {one.latency for one in tune_reading(found, WISH, ABOUT).searched} == {1e6, 2e6}
    assert "p50" in said(found)


def test_what_is_gained_stands_beside_what_it_costs():
    fresh = {OLD: rows(100), NEW: rows(150, p99=0.5, memory=2e8)}
    words = said(answer([0.4] * 5, Move.CHANGE, fresh=fresh))
    assert "| gunicorn, 1 worker, 1 thread | 100 | 50.0 ms | 47.7 MiB |" in words
    assert "| gunicorn, 2 workers, 8 threads | 150 | 500 ms | 191 MiB |" in words


def test_the_highest_rate_within_the_conditions_is_said():
    about = replace(ABOUT, carries=FoundRate("x", 130.0, 3, 3, ()))
    words = said(answer([0.4] * 5, Move.CHANGE), about=about)
    assert "up to 130/s, in 3 of 3 fresh windows" in words


def raced():
    """An answer with stages, in which a setting was dropped."""
    slow = Candidate("gunicorn", 1, 8)
    trials = {OLD: staged(rows(100)), NEW: staged(rows(150)), slow: staged(rows(50, count=2))}
    stages = (Stage(StageName.PROFILE, (OLD,), 1), Stage(StageName.RACE, tuple(trials), 6))
    about = replace(ABOUT, carries=FoundRate("x", 130.0, 3, 3, ()))
    found = answer(
        [0.4, 0.41, 0.42, 0.4, 0.41], Move.CHANGE, searched=trials, stages=stages, beaten={slow: 1}
    )
    return tune_reading(found, WISH, about)


def staged(blocks):
    """The blocks of the second stage, as a search names them."""
    return {20_000 + block: figures for block, figures in blocks.items()}


def test_each_trial_of_the_search_is_compared_with_the_incumbents_in_its_block():
    found = {one.setting: one for one in raced().searched}
    assert {(one.stage, one.change) for one in found[OLD.words].trials} == {(1, 0.0)}
    assert all(abs(one.change - 0.5) < 1e-9 for one in found[NEW.words].trials)
    assert found["gunicorn, 1 worker, 8 threads"].beaten_after == 1
    assert found[NEW.words].change.low < 0.5 < found[NEW.words].change.high + 1e-9


def test_an_answer_is_read_back_from_its_json():
    found = raced()
    data = json.loads(json.dumps(document_json(found), allow_nan=False))
    assert decode(TuneReading, data, "answer.json") == found


def searched(**rates):
    """The trials of candidates, `w2t4=100`."""
    found = {}
    for name, rate in rates.items():
        workers, threads = map(int, name.removeprefix("w").split("t"))
        found[Candidate("gunicorn", workers, threads)] = rows(rate)
    return answer([0.4] * 5, Move.CHANGE, searched=found)


def knob(found, name):
    return str(knob_words(knob_effect(found, WISH, name), WISH.metric, ""))


def test_a_setting_that_changed_nothing_is_named_and_one_that_did_with_how_much():
    found = searched(w1t1=100, w1t8=100, w2t1=200, w2t8=200)
    assert knob(found, "threads") == "threads 1, 8: did nothing on average, to within 5 %"
    assert knob(found, "workers").startswith("workers 1 to 2: requests/s +100.0 %, at ")


def test_what_no_pair_of_settings_shows_all_pairs_of_a_number_may_show_on_average():
    noise = Random(1)
    rates = {(w, t): 100 * 1.12 ** (w - 1) for w in (1, 2) for t in (1, 2, 4, 8, 16)}
    trials = {
        Candidate("gunicorn", *at): {
            block: {"ok_per_s": rate * exp(noise.gauss(0, 0.03))} for block in range(2)
        }
        for at, rate in rates.items()
    }
    found = answer([0.4] * 5, Move.KEEP, searched=trials)
    assert re.fullmatch(r"workers 1 to 2: requests/s \+1\d\.\d %, on average", knob(found, "workers"))
    assert re.fullmatch(
        r"threads 1, 2, 4, 8, 16: no difference is shown on average, and none of more than \d+ %",
        knob(found, "threads"),
    )


def test_equal_settings_are_seldom_shown_to_differ_though_it_is_looked_for_twice():
    noise, wrong = Random(7), 0
    grid = [Candidate("gunicorn", w, t) for w in (1, 2, 3) for t in (1, 2, 4, 8)]
    for _ in range(200):
        shifts = [noise.gauss(0, 0.05) for _ in range(2)]
        trials = {
            one: {k: {"ok_per_s": 100 * exp(noise.gauss(shift, 0.04))} for k, shift in enumerate(shifts)}
            for one in grid
        }
        found = answer([0.4] * 5, Move.KEEP, searched=trials)
        wrong += sum(knob_effect(found, WISH, one).change is not None for one in ("workers", "threads"))
    # Of 400 statements 5 % are 20; more than 32 come in one of 200 runs.
    assert wrong <= 32


def test_a_setting_that_was_never_varied_alone_is_not_spoken_of():
    assert knob_effect(searched(w1t1=100, w2t8=200), WISH, "threads") is None


def test_too_few_trials_show_no_difference_and_do_not_say_that_there_is_none():
    few = {OLD: rows(100, count=2), Candidate("gunicorn", 1, 8): rows(103, count=2)}
    few[OLD][1]["ok_per_s"] = 120.0
    found = answer([0.4] * 5, Move.KEEP, searched=few)
    assert knob(found, "threads") == "threads 1, 8: no difference is shown"
    assert knob_effect(found, WISH, "threads").within > 0.5

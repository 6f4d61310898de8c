"""`bench/threads`: an app rebuilt from a thread is served as the thread chose: rows compare with that."""

import json
import shlex
import shutil
from dataclasses import replace

import pytest

from benches import BENCH, bench
from prony.report.formats.as_json import document_json
from prony.tune.race import Move
from prony.tune.reading import tune_reading
from prony.tune.space import Candidate
from tune.test_tune_answer import ABOUT, NEW, OLD, WISH, answer

THREADS = bench("threads/tune").threads()
BETTER, WORSE = [0.2, 0.21, 0.2, 0.22, 0.2], [-0.2, -0.21, -0.2, -0.22, -0.2]
EQUAL = [0.02, -0.02, 0.01, 0.0, -0.01]


@pytest.mark.parametrize("name", THREADS)
def test_what_a_thread_chose_is_what_its_app_is_compared_with(said, folder, monkeypatch, name):
    searches = []
    monkeypatch.setattr("prony.cli.tune_search.TuneSearch.run", lambda search: searches.append(search) or 0)
    shutil.copytree(BENCH / "threads" / name, folder, dirs_exist_ok=True)
    done = said("tune", "--app", ".", *shlex.split(THREADS[name]["words"]))
    found = [(one.today.origin, one.wish.incumbent) for one in searches]
    assert found == [("yours", Candidate(**THREADS[name]["after"]))], done.err


def row_of(ratios, advice, **changed):
    found = tune_reading(replace(answer(ratios, advice), **changed), WISH, ABOUT)
    return bench("threads/tune").row(
        {"thread": "a/b#1", "words": ""}, json.loads(json.dumps(document_json(found))), "10m"
    )


@pytest.mark.parametrize(
    ("ratios", "advice", "broken", "verdict"),
    [
        (BETTER, Move.CHANGE, (), "beats"),
        (EQUAL, Move.KEEP, (), "ties"),
        (EQUAL, Move.CHANGE, ("memory < 1GB",), "fits"),
        (WORSE, Move.CHANGE, (), "loses"),
        (BETTER, Move.NOTHING, (), "nothing fits"),
    ],
)
def test_a_row_says_whether_the_advice_beats_what_was_chosen(ratios, advice, broken, verdict):
    assert row_of(ratios, advice, broken=broken)["verdict"] == verdict


def test_a_row_has_the_gain_with_its_interval():
    found = row_of(BETTER, Move.CHANGE)
    assert (found["chose"], found["says"], found["other"]) == (OLD.words, NEW.words, NEW.words)
    assert found["gain"] == "+22.9% (+21.5% to +24.2%), 5 pairs"


def test_a_row_of_what_is_kept_says_so():
    assert row_of(EQUAL, Move.KEEP)["says"] == "keep it"

"""Each number of a study's report is the value that the report's JSON has at its pointer, and no digit stands
outside of one.
"""

import ast
import json
import re
import tempfile
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest

import documents
import mixes
from cli import test_report_sessions
from golden import build, generators, studies
from modules import modules, tree
from prony.archive import open_archive
from prony.core.errors import FailureStage
from prony.figures.validity import in_words
from prony.model.facts import (
    CodeKind,
    FoundRate,
    HotCode,
    HotSpot,
    OtherProgram,
    RateBoundary,
    RateStep,
    RateTest,
    RunFacts,
    Unmet,
)
from prony.model.limit import Limit, LimitKind
from prony.model.trial import Failed, Fault, FaultKind, Invalid
from prony.reading.across import over_archives
from prony.reading.limits import limited_cells
from prony.reading.study import read_archive, side_of
from prony.report.across import across_document
from prony.report.brief import brief_report
from prony.report.document import Bars, Command, Judgements, Notes, Paragraph, Table
from prony.report.formats.as_json import document_json, reading_json
from prony.report.publication import Redaction
from prony.report.study import full_page, study_report
from prony.report.text import Figure, Name, Quote, Text, text
from prony.report.why import why_document

STUDIES = {
    "study_two": build.study_two,
    "closed_study": build.closed_study,
    "grid_study": studies.grid_study,
    "settings_study": studies.settings_study,
    "count_study": studies.count_study,
    "generators_study": generators.generators_study,
    "checked_study": generators.checked_study,
}

# What may hold a digit and is no number of the report: metrics' names, and the marks of lines of logs.
ALLOWED = re.compile(r"\bp(?:50|90|95|99(?:\.9+)?)\b")


CODE = HotCode(
    300,
    {CodeKind.APP: 0.9, CodeKind.SERVER: 0.1},
    (
        HotSpot(CodeKind.APP, "ssl.create_default_context", "app.py:12", 0.9),
        HotSpot(CodeKind.LIBRARY, "a.b", "", 0.02),
    ),
    0.03,
)


def disturbed(path):
    """A study with what the others lack: findings with numbers, and a search that stands alone."""
    load = build.Workload(build.ClosedLoop(20), build.DurationStop(build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(("a1+x", "b2+x")))
    counters = {
        "ListenOverflows": 1200,
        "cgroup.server.periods": 100,
        "cgroup.server.throttled_periods": 37,
        "machine.throttles": 12,
        "ListenDrops": 1300,
        "softnet.dropped": 7,
        "subject.cpu_ns": 400_000_000,
        "prony.cpu_ns": 0,
        **{"cpus.busy_ns": 10**9, "cpus.interrupts_ns": 0, "cpus.idle_ns": 10**9, "cpus.steal_ns": 0},
    }
    others = OtherProgram("cc1plus", 0.25), OtherProgram("chromium", 0.0467)
    with build.create(path, build.Plan("study", "", "", "quick", cells, 5, 1), build.FINGERPRINT) as writer:
        for block in range(5):
            for k, cell in enumerate(cells):
                values = [1_000_000 + 1000 * block] * (200 + 40 * k)
                for attempt in range(2):
                    writer.append(
                        spoilt(build.trial(cell, block, k, [], attempt=attempt), 0.3 + 0.1 * attempt)
                    )
                counted = build.trial(
                    cell, block, k, values, counters=counters, limited=build.BUSY, attempt=2
                )
                writer.append(replace(counted, facts=replace(counted.facts, code=CODE, others=others)))
        # Of two more blocks nothing counts.
        for block in (5, 6):
            writer.append(spoilt(build.trial(cells[0], block, 0, [], counters=counters), block / 10))
        writer.record_facts(RunFacts(command="prony run two.toml"))
        writer.finish(build.RunStatus.FINISHED)
    return path


def spoilt(trial, share):
    fault = Fault(FaultKind.OTHER_LOAD, share=share)
    return replace(trial, outcome=Invalid(in_words(fault)), fault=fault)


def search(path):
    load = build.Workload(build.ClosedLoop(20), build.DurationStop(build.SECOND))
    cell = build.Cell(1, build.subject("a1+x"), load)
    met, slow = RateStep(200.0, True), Unmet("p99 < 50ms", "response_all_p99", 61.2e6)
    busy = Limit(LimitKind.BUSY, share=0.95)
    found = (
        FoundRate(
            *("a1+x", 250.0, 4, 5, (met, RateStep(300.0, False, unmet=slow, limit=busy))),
            tests=(RateTest(250.0, 4, 5), RateTest(260.0, 1, 5)),
            boundary=RateBoundary(255.0, 241.0, 268.0),
        ),
        FoundRate("a2+x", 200.0, 4, 4, (met,), unknown=1),
        FoundRate("a3+x", None, 0, 0, (RateStep(0.5, None, "the machine slept"),)),
        FoundRate("a4+x", None, 0, 0, (RateStep(0.5, False, "no port", FailureStage.START),)),
    )
    with build.create(path, build.Plan("study", "", "", "quick", (cell,), 5, 1), {}) as writer:
        writer.record_cell(replace(cell, id=9), build.TrialRole.FIND_RATE)
        for attempt, share in enumerate((0.2, 0.4)):
            trial = spoilt(build.trial(replace(cell, id=9), 0, attempt, [1_000_000] * 100), share)
            writer.append(replace(trial, role=build.TrialRole.FIND_RATE, attempt=attempt))
        writer.record_facts(RunFacts(found_rates=found))
    return path


def in_sessions(path, sessions):
    def planned(plan):
        return replace(plan, design=replace(plan.design, sessions=sessions, pause_ns=build.SECOND))

    return test_report_sessions.session(path, 0, change=planned, blocks=2 * sessions)


EVERY_STUDY = {
    **STUDIES,
    **{"disturbed": disturbed, "search": search},
    **{f"{n} sessions": partial(in_sessions, sessions=n) for n in (2, 5)},
    "2 machines": test_report_sessions.resumed,
    **{"groups": mixes.study_of_groups, "statuses": mixes.study_of_statuses},
}


@cache
def read(made):
    """Return the reading of a study, which several documents show, with its JSON as others read it."""
    with tempfile.TemporaryDirectory() as folder, open_archive(made(Path(folder, "a.prony"))) as archive:
        reading = read_archive(archive)
    return reading, json.loads(json.dumps(reading_json(reading), allow_nan=False))


def shown(document_of, made, _path=None):
    reading, data = read(made)
    return document_of(reading), data


def as_read(report):
    """Return a document and its JSON as another program would read it."""
    document, data = report
    return document, json.loads(json.dumps(data, allow_nan=False))


@pytest.fixture(scope="module", params=EVERY_STUDY)
def study(request):
    """The document of a study and the JSON of the same results."""
    return shown(study_report, EVERY_STUDY[request.param])


def why(reading):
    return why_document("why", limited_cells(reading))


def of_two(_path):
    reading, _ = read(build.study_two)
    found = over_archives((side_of(reading, "first"), side_of(reading, "second")))
    return across_document(found), document_json(found)


REPORTS = {
    **{name: partial(shown, study_report, made) for name, made in EVERY_STUDY.items()},
    **{f"{name}, in short": partial(shown, brief_report, made) for name, made in EVERY_STUDY.items()},
    "study_two, as a page": partial(shown, full_page, build.study_two),
    "study_two, twice": of_two,
    "study_two, why": partial(shown, why, build.study_two),
    "disturbed, why": partial(shown, why, disturbed),
    **documents.REPORTS,
}


@pytest.fixture(scope="module", params=REPORTS)
def report(request, tmp_path_factory):
    """A document and what its command prints with --json."""
    folder = tmp_path_factory.mktemp("pointers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRONY_CACHE", str(folder / "cache"))
        return as_read(REPORTS[request.param](folder / "a.prony"))


def texts(document):
    """Yield every text of a document, but for commands."""
    yield document.title
    for section in document.sections:
        yield section.heading
        for block in section.blocks:
            match block:
                case Paragraph(words):
                    yield words
                case Notes(items):
                    yield from (words for _, words in items)
                case Judgements(items):
                    yield from (each for one in items for each in (one.verdict, one.sentence, one.detail))
                case Table(columns, rows, _, spans):
                    yield from (
                        text("{}", each) for one in spans if one for each in (one.low, one.value, one.high)
                    )
                    yield from (each for one in columns for each in (one.title, one.group))
                    yield from (entry.text for row in rows for entry in row)
                case Bars(rows):
                    yield from (each for label, count in rows for each in (label, text("{}", count)))
                case Command():
                    pass


def parts(document):
    for words in texts(document):
        yield from words.parts if isinstance(words, Text) else (words,)


def resolved(pointer, value):
    """Return what a JSON pointer names. *Source*: RFC 6901, section 4."""
    assert pointer[:1] in ("", "/")
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def test_each_number_is_the_value_at_its_pointer_written_the_same_way(report):
    document, data = report
    figures = [part for part in parts(document) if isinstance(part, Figure)]
    for figure in figures:
        value = resolved(figure.pointer, data)
        number = len(value) if isinstance(value, (list, dict)) else value
        assert type(number) in (int, float), figure.pointer
        assert figure.form(number) == str(figure), figure.pointer
        assert number == figure.value, figure.pointer


def test_each_quoted_sentence_is_the_one_at_its_pointer(report):
    document, data = report
    quotes = [part for part in parts(document) if isinstance(part, Quote)]
    assert [(one.pointer, one.words) for one in quotes] == [
        (one.pointer, resolved(one.pointer, data)) for one in quotes
    ]


def test_a_study_has_numbers_and_quotes(study):
    document, _ = study
    assert {Figure, Quote} <= {type(part) for part in parts(document)}


def test_no_digit_stands_outside_a_figure_a_name_or_a_quote(report):
    document, _ = report
    words = [ALLOWED.sub("", part) for part in parts(document) if isinstance(part, str)]
    assert [one for one in words if re.search(r"[0-9]", one)] == []


def texts_of(data):
    """Yield all the texts of a JSON value, the names of its keys too."""
    match data:
        case dict():
            yield from data
            for value in data.values():
                yield from texts_of(value)
        case list():
            for value in data:
                yield from texts_of(value)
        case str():
            yield data


# Numbers of the method, the same in every report; `1, 3 or 7 s`: when a client repeats a lost SYN.
CONSTANTS = {
    "1 (0.9–1.1)",
    "5 %",
    "95 %",
    "95 of 100",
    "59",
    "100 %",
    "5",
    "10",
    "1, 3 or 7 s",
    "net.ipv4.tcp_max_syn_backlog",
}


def is_named(name, known):
    """Return whether the JSON holds a name, or its last word: a server's version, a status of the account."""
    return name in CONSTANTS or name in known or name.split(" ")[-1] in known


def test_a_name_with_a_digit_is_in_the_json_or_a_named_constant(report):
    document, data = report
    known = "\n".join(texts_of(data))
    names = {ALLOWED.sub("", part.words) for part in parts(document) if isinstance(part, Name)}
    numbered = {one for one in names if re.search(r"[0-9]", one)}
    assert {one for one in numbered if not is_named(one, known)} == set()


def test_the_numbers_of_a_report_for_others_keep_their_pointers(study):
    document, _ = study
    own = sorted(part.pointer for part in parts(document) if isinstance(part, Figure))
    passed_on = Redaction("bench-7")(document)
    assert sorted(part.pointer for part in parts(passed_on) if isinstance(part, Figure)) == own


def test_what_failed_has_its_test_in_the_json(tmp_path):
    with open_archive(studies.count_study(tmp_path / "a.prony")) as archive:
        (found,) = reading_json(read_archive(archive))["groups"][1]["failures"]
    assert (found["count"], found["least"]) == ({"failed": 5, "total": 5}, {"failed": 0, "total": 5})
    assert found["shown"] is True
    assert found["p_value"] == pytest.approx(0.0079, abs=1e-4)
    assert found["level"] == 0.05


def test_the_drift_of_the_calibration_is_in_the_json(tmp_path):
    with open_archive(studies.grid_study(tmp_path / "a.prony")) as archive:
        reading = read_archive(archive)
    found = reading_json(reading)["drift"]
    assert set(found) == {"trials", "counted", "uncounted", "metrics"}
    assert all(set(one) >= {"count", "change", "low", "high", "drifts"} for one in found["metrics"].values())


def test_a_failed_subject_names_its_reason_where_all_its_trials_say_the_same(tmp_path):
    load = build.Workload(build.ClosedLoop(1), build.DurationStop(build.SECOND))
    cell = build.Cell(1, build.subject("a+x"), load)
    with build.create(tmp_path / "a.prony", build.Plan("s", "", "", "quick", (cell,), 1, 1), {}) as writer:
        writer.append(build.trial(cell, 0, 0, [], outcome=Failed("start", "exited with status 3")))
    with open_archive(tmp_path / "a.prony") as archive:
        document = study_report(read_archive(archive))
    quotes = {part.words: part.pointer for part in parts(document) if isinstance(part, Quote)}
    assert quotes["exited with status 3"] == "/groups/0/cells/0/failed_alike/0/reason"


# --- every document ---------------------------------------------------------------------------------------

# Each function of the product that makes a Document, with what of `REPORTS` shows it.
MAKERS = {
    "study_report": "study_two",
    "brief_report": "study_two, in short",
    "full_page": "study_two, as a page",
    "across_document": "study_two, twice",
    "why_document": "study_two, why",
    "load_document": "load: a closed loop",
    "compare_document": "compare: two subjects",
    "selftest_document": "selftest: two labels",
    "planted_document": "selftest: planted",
    "studies_document": "studies: all",
    "study_page": "studies: those with figures",
    "calibration_document": "calibrate",
    "host_document": "host",
    "servers_document": "servers",
    "server_document": "servers by name",
    "checks_document": "servers, checked",
    "advice_document": "doctor",
    "answer_document": "tune",
    "try_document": "tune: one setting tried",
}


def makers():
    """Yield the public functions of the product that return a Document."""
    for module in modules():
        for node in tree(module).body:
            match node:
                case ast.FunctionDef(name=name, returns=ast.Name("Document")) if not name.startswith("_"):
                    yield name


def test_every_document_is_held_against_its_json():
    assert set(makers()) == MAKERS.keys()
    assert set(MAKERS.values()) <= REPORTS.keys()

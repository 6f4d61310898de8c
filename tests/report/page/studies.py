"""Archives to make pages of: those of the golden tests, and some that are odd."""

import json
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from golden import build, generators, studies
from prony.archive import open_archive
from prony.core.errors import FailureStage
from prony.figures.validity import in_words
from prony.model.trial import Fault, FaultKind, Invalid
from prony.reading.study import read_archive
from prony.reading.traces import primary_cells, traces
from prony.report.formats.as_json import reading_json
from prony.report.page.study import page_of_study

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[2K'\"&amp;${x}\\"


def one_subject(path):
    """One subject in one block: nothing to compare, no interval."""
    return hostile(path, names=("alone+x",), blocks=1)


def hostile(path, names=(HOSTILE, "b'\"+<b>"), blocks=5):
    """Subjects with names that would end a script, begin a tag or steer a terminal."""
    load = build.Workload(build.ClosedLoop(20), build.DurationStop(3 * build.SECOND))
    cells = tuple(
        build.Cell(k + 1, replace(build.subject("a+x"), name=name), load) for k, name in enumerate(names)
    )
    plan = build.Plan(names[0], names[0], names[0], "quick", cells, blocks, 1)
    with build.create(path, plan, build.FINGERPRINT) as writer:
        for name in names:
            writer.record_subject(build.SubjectRecord(name, server_version=name, command_line=name))
        for block in range(blocks):
            for k, cell in enumerate(cells):
                writer.append(build.trial(cell, block, k, [1_000_000 + 1000 * block] * (200 + 40 * k)))
        writer.append(failed(cells[-1], blocks, names[0]))
        writer.finish(build.RunStatus.FINISHED)
    return path


NAMES = ("a1+x", "b2+x")


def small(path, names=NAMES, blocks=2, plan=lambda plan: plan, made=lambda trial, _k: trial, **trial):
    """A closed loop of 3 s with two subjects; ``made`` changes the trial of the k-th of them."""
    load = build.Workload(build.ClosedLoop(20), build.DurationStop(3 * build.SECOND))
    cells = tuple(build.Cell(k + 1, build.subject(name), load) for k, name in enumerate(names))
    with build.create(
        path, plan(build.Plan("s", "Ein Maß", "", "quick", cells, blocks, 1)), build.FINGERPRINT
    ) as writer:
        for name in names:
            writer.record_subject(build.SubjectRecord(name))
        for block in range(blocks):
            for k, cell in enumerate(cells):
                values = [1_000_000 + 1000 * block] * (200 + 40 * k)
                writer.append(made(build.trial(cell, block, k, values, **trial), k))
        writer.finish(build.RunStatus.FINISHED)
    return path


def spoilt(trial, k):
    fault = Fault(FaultKind.OTHER_LOAD, share=0.3)
    return replace(trial, outcome=Invalid(in_words(fault)), fault=fault) if k else trial


def without_samples(trial, _k):
    return replace(trial, samples=(), counters={})


def without_series(trial, _k):
    return replace(trial, recording=replace(trial.recording, series=()))


def in_sessions(plan):
    return replace(plan, design=replace(plan.design, sessions=2, pause_ns=build.SECOND))


ODD = {
    "one_trial": partial(small, names=("alone+x",), blocks=1),
    "missing_metrics": partial(small, made=without_samples),
    "no_series": partial(small, made=without_series),
    "non_ascii": partial(small, names=("häßlich+x", "サーバー+x")),
    "invalid_trials": partial(small, made=spoilt),
    "several_sessions": partial(small, blocks=4, plan=in_sessions),
}
"""What an archive may lack, or have besides."""


def failed(cell, block, words):
    outcome = build.Failed(FailureStage.START, words)
    return build.trial(cell, block, 0, [], outcome=outcome, log=f"{words}\n{words}")


STUDIES = {
    "study_two": build.study_two,
    "grid_study": studies.grid_study,
    "settings_study": studies.settings_study,
    "count_study": studies.count_study,
    "generators_study": generators.generators_study,
    "hostile": hostile,
    "one_subject": one_subject,
}


def sixty_cells(path):
    """Eight subjects under eight loads, eight blocks: 512 trials of 30 s."""
    loads = [
        build.Workload(build.ClosedLoop(10 * (k + 1)), build.DurationStop(30 * build.SECOND))
        for k in range(8)
    ]
    names = [f"server-{k}+hello" for k in range(8)]
    cells = tuple(
        build.Cell(8 * k + j + 1, build.subject(name), load)
        for k, load in enumerate(loads)
        for j, name in enumerate(names)
    )
    with build.create(path, build.Plan("a", "A", "", "full", cells, 8, 1), build.FINGERPRINT) as writer:
        for name in names:
            writer.record_subject(build.SubjectRecord(name))
        for block in range(8):
            for k, cell in enumerate(cells):
                values = [1_000_000 + 30_000 * block + 1000 * j for j in range(300 + 10 * k)]
                writer.append(build.trial(cell, block, k, values))
        writer.finish(build.RunStatus.FINISHED)
    return path


def read_file(path):
    """Return the results of an archive and its traces."""
    with open_archive(path) as archive:
        reading = read_archive(archive)
        return reading, traces(reading, archive.trials(), primary_cells(reading.groups))


def page_of_file(path):
    """Return the page of an archive."""
    return page_of_study(*read_file(path))


def archive_of(name, folder):
    """Make the archive of a study in a folder, and return its path."""
    path = Path(folder, "a.prony")
    (STUDIES | ODD)[name](path)
    return path


@cache
def read(name):
    """Return the results of a study and its traces."""
    with TemporaryDirectory() as folder:
        return read_file(archive_of(name, folder))


@cache
def page_of(name):
    """Return the page of a study."""
    return page_of_study(*read(name))


@cache
def json_of(name):
    """Return the JSON of a study's report."""
    return json.loads(json.dumps(reading_json(read(name)[0])))

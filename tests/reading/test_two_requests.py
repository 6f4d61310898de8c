"""Two loads that differ only in what they ask for are two groups, each named after its request."""

from dataclasses import replace

from golden import build
from prony.model.plan import Cell
from prony.report.formats.as_json import reading_json
from prony.report.study import study_report
from report.page import studies

LOAD = build.Workload(build.ClosedLoop(10), build.DurationStop(2 * build.SECOND))
MS = 1_000_000


def asking(path):
    return replace(LOAD, request=replace(LOAD.request, path=path))


def study(path, *loads):
    """Subjects ``a`` and ``b`` under so many loads; what ``b`` is asked for under the later ones is slow."""
    cells = tuple(
        Cell(2 * number + place, build.subject(f"{name}+x"), load)
        for number, load in enumerate(loads)
        for place, name in enumerate("ab")
    )
    with build.create(path, build.Plan("s", "S", "", "quick", cells, 5, 1), build.FINGERPRINT) as writer:
        for block in range(5):
            for cell in cells:
                slow = 1 + cell.id
                writer.append(build.trial(cell, block, cell.id, [slow * MS + 1000 * block] * (2000 // slow)))
        writer.finish()
    return studies.read_file(path)[0]


def test_each_subject_is_once_in_each_group_and_the_groups_are_named_after_their_request(tmp_path):
    reading = study(tmp_path / "a.prony", asking("/"), asking("/cart"))
    assert [[cell.name for cell in group.cells] for group in reading.groups] == [["a+x", "b+x"]] * 2
    assert [group.asks for group in reading.groups] == ["GET /", "GET /cart"]
    assert [group["asks"] for group in reading_json(reading)["groups"]] == ["GET /", "GET /cart"]
    headings = [str(section.heading) for section in study_report(reading).sections]
    assert [one for one in headings if one.startswith("Closed loop")] == [
        "Closed loop, 10 connections, 2 s, GET /",
        "Closed loop, 10 connections, 2 s, GET /cart",
    ]


def test_apps_that_are_asked_for_pages_of_their_own_are_one_group(tmp_path):
    cells = (Cell(0, build.subject("a+x"), asking("/")), Cell(1, build.subject("b+y"), asking("/page")))
    path = tmp_path / "a.prony"
    with build.create(path, build.Plan("s", "S", "", "quick", cells, 5, 1), build.FINGERPRINT) as writer:
        for block in range(5):
            for cell in cells:
                writer.append(build.trial(cell, block, cell.id, [MS] * 200))
        writer.finish()
    (group,) = studies.read_file(path)[0].groups
    assert (len(group.cells), group.asks) == (2, None)

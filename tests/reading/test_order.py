"""What runs late in its block against what runs early, as the report says it."""

from dataclasses import replace

import pytest

from golden import build
from prony.model.plan import Cell
from prony.model.workload import OpenLoop
from prony.report.document import Notes
from prony.report.formats.as_json import reading_json
from prony.report.study import study_report
from report.page import studies

WAITS_NS = 1_000_000


def study(path, slower, loop):
    """Four subjects in six blocks, in an order that differs; the last of a block is so much slower."""
    load = build.Workload(loop, build.DurationStop(2 * build.SECOND))
    cells = tuple(Cell(k, build.subject(f"{name}+x"), load) for k, name in enumerate("abcd"))
    with build.create(path, build.Plan("s", "S", "", "quick", cells, 6, 1), build.FINGERPRINT) as writer:
        for block in range(6):
            for place in range(4):
                cell = cells[(place + block) % 4]
                factor = 1 + slower * place / 3 + 0.001 * ((7 * block + 3 * place) % 5)
                values = [int(WAITS_NS * factor)] * int(2000 / factor)
                trial = build.trial(cell, block, place, values)
                started = trial.started_unix_ns + (10 * block + place) * build.SECOND
                writer.append(replace(trial, started_unix_ns=started, ended_unix_ns=started + build.SECOND))
        writer.finish()
    return studies.read_file(path)[0]


@pytest.mark.parametrize("loop", [build.ClosedLoop(10), OpenLoop(500.0)])
@pytest.mark.parametrize(
    ("slower", "said"),
    [
        (0.2, "The order within blocks mattered"),
        (0.0, "The order within blocks changed nothing beyond the margin"),
    ],
)
def test_a_report_says_whether_the_order_mattered(tmp_path, slower, said, loop):
    reading = study(tmp_path / "a.prony", slower, loop)
    words = [str(text) for section in study_report(reading).sections for text in notes(section)]
    assert any(said in one for one in words)
    effect = reading_json(reading)["order_effect"]["effect"]
    assert effect == pytest.approx(1 / (1 + slower) - 1, abs=0.03)


def notes(section):
    for block in section.blocks:
        if isinstance(block, Notes):
            yield from (text for _, text in block.items)

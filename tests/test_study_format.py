"""The example of docs/reference/study-format.md is a study that Prony takes."""

import re
import tomllib
from pathlib import Path

from prony.catalog.loader import load_catalog
from prony.model import ClosedLoop, OpenLoop
from prony.plan import PlanOptions, StudyDocument, make_plan

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "study-format.md"


def example():
    found = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return StudyDocument.model_validate(tomllib.loads(found.group(1)))


def test_the_example_of_the_page_becomes_a_plan():
    plan = make_plan(example(), "", load_catalog(), PlanOptions())
    loops = [cell.workload.loop for cell in plan.cells[:2]]
    assert isinstance(loops[0], OpenLoop)
    assert (loops[0].rate_per_s, loops[0].connections) == (100, 512)
    assert loops[1] == ClosedLoop(10)
    assert len(plan.cells) == 4


def test_the_page_names_every_field():
    text = PAGE.read_text(encoding="utf-8")
    document = example()
    parts = (document, document.subjects[0], document.workloads[0], next(iter(document.profiles.values())))
    missing = [name for part in parts for name in type(part).model_fields if f"{name} =" not in text]
    assert missing == ["subjects", "workloads", "profiles"]

"""The example of docs/reference/study-format.md is a study that Prony takes; the page names all there is."""

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.studies import COLUMNS
from prony.catalog.schema.studies.check import check_study, grid_of
from prony.model.plan import ClaimKind
from prony.model.workload import ClosedLoop, OpenLoop
from prony.plan.build import PlanOptions, make_plan
from prony.plan.document import (
    AppDocument,
    CalibrationDocument,
    ClaimDocument,
    CrossCheckDocument,
    DesignDocument,
    Generator,
    NeedsDocument,
    PathDocument,
    ProfileDocument,
    SandboxDocument,
    StudyDocument,
    SubjectDocument,
    UsersDocument,
    WorkloadChange,
    WorkloadDocument,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "study-format.md"
DOCUMENTS = (
    *(StudyDocument, SandboxDocument, DesignDocument, CalibrationDocument, SubjectDocument, WorkloadDocument),
    *(WorkloadChange, PathDocument, CrossCheckDocument, ProfileDocument, ClaimDocument, NeedsDocument),
    UsersDocument,
    AppDocument,
)
# Tables, which the example writes with brackets.
TABLES = {
    "apps",
    "kernels",
    "sysctl",
    "sandbox",
    "design",
    "calibration",
    "subjects",
    "workloads",
    "profiles",
    "claims",
    "sources",
    "cross_check",
}


def example():
    found = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return StudyDocument.model_validate(tomllib.loads(found.group(1)))


def test_the_example_of_the_page_becomes_a_plan():
    plan = make_plan(example(), "", load_catalog(), PlanOptions(requests=lambda _, load: load))
    first, second, third = plan.cells[:3]
    assert isinstance(first.workload.loop, OpenLoop)
    assert (first.workload.loop.rate_per_s, first.workload.loop.connections) == (100, 512)
    assert second.workload.loop == third.workload.loop == ClosedLoop(10)
    assert (second.engine.name, third.engine.name) == ("prony", "wrk")
    assert len(plan.cells) == 12
    assert "GET /=9 /cart=1" in {one.workload.describe_request() for one in plan.cells}
    assert plan.calibration is not None


def test_the_example_with_own_apps_keeps_all_rules():
    part = PAGE.read_text(encoding="utf-8").partition("## Apps of your own")[2]
    own = tomllib.loads(re.search(r"```toml\n(.*?)```", part, re.DOTALL)[1])
    rest = {
        "name": "mine",
        "title": "Mine",
        "workloads": [{"loop": "closed", "connections": 1}],
        "profiles": {"quick": {"blocks": 1, "duration": "1s"}},
    }
    document = StudyDocument.model_validate({**rest, **own})
    assert check_study(document, grid_of(document)) == []


def test_the_example_keeps_all_rules():
    assert check_study(example(), grid_of(example())) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.__name__)
def test_the_page_names_every_field(document):
    text = PAGE.read_text(encoding="utf-8")
    missing = {name for name in document.model_fields if f"{name} =" not in text and f"`{name}`" not in text}
    assert missing <= TABLES


def test_the_page_names_every_kind_generator_and_column():
    text = PAGE.read_text(encoding="utf-8")
    for name in (*ClaimKind, *get_args(Generator), *COLUMNS):
        assert f"`{name}`" in text

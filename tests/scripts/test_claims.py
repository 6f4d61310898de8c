"""`scripts/claims`: verdicts of archives become rows, and claims that have changed since do not."""

from dataclasses import replace

import pytest

from golden import build
from prony.archive import create
from prony.catalog.schema.loader import load_catalog
from prony.plan.build import PlanOptions
from prony.study.task import plan_of_source, read_source
from scripts.loading import load

claims = load("claims")


def archive(folder, change=lambda plan: plan):
    name, known = "embedded-servers", load_catalog()
    plan = plan_of_source(name, read_source(name), known, PlanOptions(profile="quick"))
    file = folder / "a.prony"
    with create(file, change(plan), build.FINGERPRINT):
        pass
    return file


def test_each_claim_becomes_a_row_with_the_archives_digest(tmp_path):
    rows = list(claims.rows(archive(tmp_path)))
    assert len(rows) == 10
    assert {row["verdict"] for row in rows} == {"not testable here"}
    assert {len(row["archive_sha256"]) for row in rows} == {64}
    assert all(set(row) == set(claims.COLUMNS) for row in rows)


def test_a_page_of_a_part_has_rows_of_the_claims_that_it_tests(tmp_path):
    assert list(claims.rows(archive(tmp_path), "embedded-servers-part")) == []


def test_an_archive_is_judged_by_the_claims_of_today(tmp_path):
    def older(plan):
        return replace(plan, claims=tuple(replace(claim, low=0.5) for claim in plan.claims[:1]))

    (tmp_path / "older").mkdir()
    found, current = (
        [{**row, "archive_sha256": ""} for row in claims.rows(file)]
        for file in (archive(tmp_path / "older", older), archive(tmp_path))
    )
    assert found == current


def test_a_study_of_ones_own_has_no_row(tmp_path):
    with pytest.raises(SystemExit, match="`mine` is no built-in study"):
        list(claims.rows(archive(tmp_path, lambda plan: replace(plan, name="mine"))))

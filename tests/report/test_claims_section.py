"""What the section on claims says of the levels of its intervals."""

from dataclasses import replace

import pytest

from cli.test_report_sessions import session
from prony.archive import open_archive
from prony.model.plan import Claim, ClaimKind
from prony.reading.study import read_archive
from prony.report.formats.markdown import markdown
from prony.report.study import study_report

NOTE = "of one that would refute it by itself is wider than one of 95 %; that may leave the claim undecided"


def report_of(path, subject):
    fastest = Claim("fastest", "it is the fastest", ClaimKind.HIGHEST, "ok_per_s", subject)
    with open_archive(session(path, 0, change=lambda plan: replace(plan, claims=(fastest,)))) as archive:
        return " ".join(markdown(study_report(read_archive(archive))).split())


@pytest.mark.parametrize(("subject", "level"), [("gunicorn*", "97.5 %"), ("bjoern*", "95 %")])
def test_a_claim_that_one_of_several_figures_refutes_says_why_its_interval_is_wider(tmp_path, subject, level):
    text = report_of(tmp_path / "a.prony", subject)
    assert f"times ({level} " in text
    assert text.count(NOTE) == (level != "95 %")

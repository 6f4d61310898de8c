"""The pages of docs/studies: each names its archive, the one that claims.csv has its verdicts from."""

import csv
import re

import pytest

from scripts.loading import SCRIPTS, load

STUDIES = SCRIPTS.parent / "docs" / "studies"
DIGEST = "0123456789abcdef" * 4
PAGE = "Machine: Intel Xeon.\n\nMeasured on 2026-11-26 with Prony 0.1.0.\n\n## What was claimed\n"


def digests():
    """Return the digest of the archive of each page, as claims.csv has it."""
    with (STUDIES / "claims.csv").open(encoding="utf-8", newline="") as opened:
        return {row["page"]: row["archive_sha256"] for row in csv.DictReader(opened)}


@pytest.mark.parametrize("name", sorted(digests()))
def test_a_page_names_the_archive_of_its_claims(name):
    page = (STUDIES / f"{name}.md").read_text(encoding="utf-8")
    assert re.findall(r"^Archive: SHA-256 ([0-9a-f]{64})\.$", page, re.MULTILINE) == [digests()[name]]


def test_the_digest_stands_below_when_it_was_measured():
    named = load("study-pages").with_digest(PAGE, DIGEST)
    before, after = named.split(f"\n\nArchive: SHA-256 {DIGEST}.\n")
    assert before.endswith("Measured on 2026-11-26 with Prony 0.1.0.")
    assert after.startswith("\n## ")


def test_a_page_that_does_not_say_when_it_was_measured_is_refused():
    with pytest.raises(SystemExit, match="does not say when"):
        load("study-pages").with_digest("# Title\n", DIGEST)

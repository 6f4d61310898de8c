"""What `prony servers NAME` says of a server: values, not the catalogue's templates."""

from prony.catalog.schema.loader import load_catalog
from prony.cli.documents.servers import server_document
from prony.report.document import Table


def facts(name):
    """Return the table of facts as (fact, value) pairs."""
    sections = {section.heading: section for section in server_document(load_catalog().server(name)).sections}
    (table,) = [block for block in sections["Facts"].blocks if isinstance(block, Table)]
    return {str(row[0].text): str(row[1].text) for row in table.rows}


def test_facts_are_shown_under_the_defaults_with_the_settings_they_come_from():
    found = facts("gunicorn")
    assert found["listen queue"] == "2048 (backlog)"
    assert found["requests at once"] == "1 (workers × threads)"
    assert found["keep-alive if threads is above 1"] == "on, idle for 2 s (keep_alive)"


def test_a_fact_that_no_setting_changes_is_shown_alone():
    assert facts("wsgiref")["listen queue"] == "5"


def test_a_default_that_its_own_condition_excludes_is_not_shown():
    assert facts("meinheld")["keep-alive if keep_alive is above 0"] == "on, idle for keep_alive s"

"""docs/archive-format.md and the schema say the same."""

import re
from pathlib import Path

from prony.archive.guard import APPLICATION_ID, FORMAT_VERSION, columns, schema

PAGE = Path(__file__).parents[2] / "docs/archive-format.md"


def documented():
    tables = {}
    for part in re.split(r"^### ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        name = re.match(r"`(\w+)`", part).group(1)
        tables[name] = tuple(re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE))
    return tables


def test_every_table_and_column_is_documented_in_order():
    assert documented() == {table: tuple(names) for table, names in columns().items()}


def test_every_index_is_documented():
    for name in re.findall(r"CREATE INDEX (\w+)", schema()):
        assert f"`{name}`" in PAGE.read_text("utf-8")


def test_the_page_names_the_ids():
    text = PAGE.read_text("utf-8")
    assert str(APPLICATION_ID) in text
    assert f"**format {FORMAT_VERSION}**" in text

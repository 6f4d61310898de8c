"""What the documentation says is so: examples parse, names exist, links lead somewhere."""

import ast
import json
import re
import shlex
import tomllib
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest
from typer.main import get_command

from made_pages import made_page, reference
from prony.archive.guard import schema
from prony.catalog.schema.entry import ServerEntry
from prony.catalog.schema.loader import load_catalog
from prony.cli.main import COMMANDS, app_with
from prony.core.glossary import TERMS
from prony.study.catalog_check import names_to_check, subjects_to_check

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MADE = DOCS / "made"
PAGES = sorted({*DOCS.rglob("*.md"), *ROOT.glob("*.md")} - {*MADE.glob("*.md")})
REFERENCE = DOCS / "reference"
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
KEYS_OF_JSON = ("report-json.md", "load-json.md", "compare-json.md", "tune-json.md")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def ident(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    return [text for kind, text in FENCE.findall(page.read_text()) if kind == language]


def first_cells(page, heading):
    """Return the code words that head rows of tables and items of lists, after ``heading``."""
    return words_that_head(page.read_text().partition(heading)[2])


def words_that_head(text):
    rows = re.findall(r"^(?:\| (`.+?) \||- ((?:`[^`]+`(?:,\s)?)+):)", text, re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", "".join(row))}


def anchor(heading):
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.strip().replace(" ", "-")


def options_of(name):
    command = get_command(app_with()).commands[name]
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


@pytest.fixture(scope="module")
def recording():
    """A Recording of the engine itself, of an open loop against the reference server."""
    from prony import _engine

    with _engine.ReferenceServer(json.dumps({"port": 0})) as server:
        (text,) = blocks(REFERENCE / "engine-wire.md", "json")[:1]
        spec = json.loads(text)
        spec["target"]["port"] = server.port
        spec["cpus"] = None
        spec["workload"]["loop"] = {
            **{"kind": "open", "rate_per_s": 200.0, "arrivals": "constant", "seed": 1, "connections": 4}
        }
        spec["workload"]["stop"]["duration_ns"] = 300_000_000
        events = []
        found = _engine.run(json.dumps(spec), lambda event: events.append(json.loads(event)))
    return {**json.loads(found), "events": events}


# --- what a reader meets -----------------------------------------------------------------------------------


def is_recorded(page, line):
    """Whether `prony report --markdown` or `bench/diagnosis/matrix` wrote this row of figures or this
    command, or a row names a test: none of these can be folded.
    """
    if line.startswith("|") and (NAMED_TEST.search(line) or page == DOCS / "diagnosis.md"):
        return True
    if page.parent != DOCS / "studies":
        return False
    if page.name == "README.md":
        return line.startswith("|")
    return line.startswith(("|", "![")) or any(line in text.splitlines() for text in blocks(page, "text"))


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_lines_have_at_most_120_columns(page):
    wide = {
        number: line
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > 120 and not is_recorded(page, line)
    }
    assert wide == {}


def test_the_readme_has_at_most_80_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 80


def test_what_a_newcomer_reads_has_at_most_5000_lines():
    text = (DOCS / "README.md").read_text()
    listed = LINK.findall(text.partition("## Read in this order")[2].partition("\n## ")[0])
    assert len(listed) > 10
    assert sum(len((DOCS / page).read_text().splitlines()) for page in listed) <= 5000


@pytest.mark.parametrize(
    "name", ["compare", "groups", "names-and-ways", "requests-from-files", "what-a-load-leaves"]
)
def test_a_guide_to_one_task_of_a_load_is_one_page(name):
    assert len((DOCS / "guides" / f"{name}.md").read_text().splitlines()) <= 110


def test_the_output_in_the_readme_has_at_most_25_lines():
    (output,) = blocks(ROOT / "README.md", "text")
    assert len(output.splitlines()) <= 25


def test_the_readme_asks_the_first_question_first():
    headings = re.findall(r"^## (.+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert headings[0] == "Your own app"


def test_every_term_of_the_glossary_is_linked_from_a_page():
    linked = {link for page in PAGES for link in re.findall(r"glossary\.md#([\w-]+)\)", page.read_text())}
    assert {anchor(term) for term in TERMS} - linked == set()


def test_the_terms_of_the_glossary_are_in_order_and_short():
    assert list(TERMS) == sorted(TERMS)
    assert [term for term, words in TERMS.items() if not 1 <= len(re.findall(r"\.(?: |$)", words)) <= 4] == []


def test_folding_keeps_every_word_and_breaks_neither_code_nor_links():
    text = "- a `code that stands` and [a link](to/a/page.md), 5 > 4 - 1 " + "word " * 40 + "1. end"
    folded = reference().folded(text)
    assert folded.split() == text.split()
    assert max(map(len, folded.splitlines())) <= 120
    assert not re.search(r"^  (?:[-+*>#]|\d+\.) ", folded, re.MULTILINE)
    assert reference().folded(folded) == folded


# --- examples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_json_examples_parse(page):
    for text in blocks(page, "json"):
        json.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_toml_examples_parse(page):
    for text in blocks(page, "toml"):
        tomllib.loads(text)


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_links_lead_to_files_and_headings_that_there_are(page):
    links = links_within(page.read_text())
    assert [link for link in links if not leads_somewhere(link, page, page.read_text())] == []
    # Whoever reads the repository has no pages that nobody committed.
    assert [link for link in links if MADE in (page.parent / link).resolve().parents] == []


@pytest.mark.parametrize("name", ["servers.md", "mistakes.md", "planted-faults.md", *KEYS_OF_JSON])
def test_links_of_a_made_page_lead_somewhere_too(name):
    text = made_page(name)
    links = links_within(text)
    assert [link for link in links if not leads_somewhere(link, MADE / name, text)] == []
    assert text.count("\n") > 50


def test_every_made_page_is_named_where_a_reader_looks():
    named = (DOCS / "README.md").read_text() + (REFERENCE / "json.md").read_text()
    assert [name for name in reference().MADE_PAGES if f"`{name}`" not in named] == []


def test_pages_that_the_product_names_are_committed():
    files = [file for kind in ("py", "toml", "sql") for file in (ROOT / "python").rglob(f"*.{kind}")]
    files += (ROOT / "crates").rglob("*.rs")
    named = {
        page for file in files for page in re.findall(r"(?<![\w/])docs/[\w/-]+\.md", file.read_text("utf-8"))
    }
    assert len(named) > 5
    assert {ROOT / page for page in named} - {*PAGES} == set()


def links_within(text):
    return [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]


def leads_somewhere(target, page, text):
    path, _, heading = target.partition("#")
    file = (page.parent.resolve() / path).resolve() if path else page
    if path and not file.exists():
        return False
    if not heading or file.suffix != ".md":
        return True
    headings = re.findall(r"^#+ (.+)$", file.read_text() if path else text, re.MULTILINE)
    return heading in {anchor(title) for title in headings}


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_commands_in_the_text_use_options_that_there_are(page):
    names = list(COMMANDS)
    for line in re.findall(r"^\$? ?(?:\./)?prony (\w+ .*)$", page.read_text(), re.MULTILINE):
        split = shlex.split(line.replace("\\", ""), comments=True)
        # What follows is another program's.
        words = list(takewhile(lambda word: word not in {"&&", "||", "|", ">", ";", "&"}, split))
        assert words[0] in names, line
        used = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-zA-Z]", word)}
        assert used - options_of(words[0]) - {"--help", "-h"} == set(), line


# --- the engine's border ----------------------------------------------------------------------------------


def test_the_example_of_a_specification_is_one_that_the_engine_takes(recording):
    assert recording["account"]["ok"] == 60


def test_the_classes_of_the_account_are_those_of_a_recording(recording):
    page = REFERENCE / "engine-wire.md"
    documented = json.loads(blocks(page, "json")[1])["account"]
    assert set(documented) == set(recording["account"])
    described = first_cells(page, "**Account.**")
    assert set(recording["account"]) - {"scheduled"} <= described


def test_the_example_of_a_recording_has_the_keys_of_a_real_one(recording):
    def keys(value, path=""):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield f"{path}.{key}"
                yield from keys(inner, f"{path}.{key}")
        if isinstance(value, list) and value:
            yield from keys(value[0], f"{path}[]")

    example = json.loads(blocks(REFERENCE / "engine-wire.md", "json")[1])
    # On a busy machine the generator may have evidence against itself.
    free = (
        ".account.bad_status.",
        ".account.ok_status.",
        ".statuses.",
        ".spec.",
        ".events",
        ".error_samples[]",
        ".generator.evidence[]",
    )
    documented = {key for key in keys(example) if not key.startswith(free)}
    real = {key for key in keys(recording) if not key.startswith(free)}
    assert documented - real == set()
    # Distributions are written out once.
    shape = re.compile(r"\.(count|min_ns|max_ns|sum_ns|histogram)$")
    assert {key for key in real - documented if not shape.search(key)} == set()


def test_the_events_are_those_that_the_engine_tells(recording):
    text = (REFERENCE / "engine-wire.md").read_text()
    assert all(f'"event": "{event["event"]}"' in text for event in recording["events"])


# --- the other references ---------------------------------------------------------------------------------


def test_the_keys_of_an_entry_are_documented():
    page = (REFERENCE / "catalogue-format.md").read_text()
    documented = set(re.findall(r"`([a-z_]+)[^`]*`", page))
    assert set(ServerEntry.model_fields) - documented == set()


def test_the_readme_counts_the_rows_of_the_catalogue():
    catalog = load_catalog(found=ROOT / "nothing")
    rows = list(subjects_to_check(catalog, names_to_check(catalog, ()), catalog.app("hello")))
    every = len(catalog.servers) + len(catalog.frontends)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"{every} servers and frontends in {len(rows)} rows" in readme
    assert {entry.language for entry in catalog.servers.values()} == set(reference().LANGUAGES)


def test_the_page_of_servers_names_every_entry_under_its_language():
    catalog = load_catalog(found=ROOT / "nothing")
    page = " ".join((REFERENCE / "catalogue.md").read_text().split())
    for language, title in reference().LANGUAGES.items():
        names = sorted(name for name, entry in catalog.servers.items() if entry.language == language)
        assert re.search(rf"\*\*{title}\*\* \([^)]+\): {re.escape(', '.join(names))}(?: |$)", page)


def test_a_studys_page_links_its_terms_to_the_glossary():
    recorded = (
        "# S\n\nA [closed loop](#closed-loop), [below](#charts).\n\n## Terms\n\n### closed loop\n\nA load.\n"
    )
    page = reference().with_common_terms(recorded)
    assert page == "# S\n\nA [closed loop](../glossary.md#closed-loop), [below](#charts).\n"
    assert reference().with_common_terms(page) == page


def test_what_changed_in_a_study_stands_once_on_its_page():
    changes = tomllib.loads((DOCS / "studies" / "changes.toml").read_text())
    assert changes
    for name, said in changes.items():
        page = " ".join((DOCS / "studies" / f"{name}.md").read_text().split())
        assert [page.count(f"- {words}") for words in said] == [1] * len(said)


def test_the_output_in_the_readme_has_the_figures_of_the_recorded_page():
    (output,) = blocks(ROOT / "README.md", "text")
    page = (DOCS / "studies/shop-web.md").read_text().replace("**", "")
    recorded = {tuple(cell.strip() for cell in row.split("|") if cell.strip()) for row in page.splitlines()}
    table = output.partition("\nsubject ")[2].partition("\nall: ")[0].splitlines()[1:]
    assert len(table) == 3
    assert [line for line in table if tuple(re.split(r" {2,}", line)) not in recorded] == []


def test_the_output_in_the_readme_says_what_the_recorded_page_says():
    (output,) = blocks(ROOT / "README.md", "text")
    page = re.sub(r"\[([^]]+)\]\([^)]*#[^)]+\)", r"\1", (DOCS / "studies/shop-web.md").read_text())
    words = " ".join(page.replace("**", "").split()).replace(": was not", " was not")
    prose = re.sub(r"(?s)\nsubject .*?\nall: ", "\nall: ", output.partition("\n")[2])
    sentences = re.split(r"\.?\n(?=[a-z.]+ {2,}|all: | {11}|\S+ is best|Closed|\.\.\.)\n*", prose)
    said = [re.sub(r"^[a-z]+ {2,}", "", " ".join(one.split())).strip(".") for one in sentences]
    assert len(said) >= 8
    assert [one for one in said if re.sub(r"^(limits|generator|machine|trials) ", "", one) not in words] == []


def test_every_column_of_an_archive_is_documented():
    from sqlite3 import connect

    database = connect(":memory:")
    database.executescript(schema())
    page = (DOCS / "archive-format.md").read_text()
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    missing = [
        f"{table}.{column[1]}"
        for table in tables
        if not table.startswith("sqlite_")
        for column in database.execute(f"PRAGMA table_info({table})")
        if column[1] not in page
    ]
    database.close()
    assert missing == []


# --- the machine ------------------------------------------------------------------------------------------


def test_the_page_of_the_fingerprint_has_every_key_in_its_order():
    from prony.machine.fingerprint import fingerprint
    from prony.model.json_codec import encode

    text = (REFERENCE / "json.md").read_text().partition("## Fingerprint")[2]
    assert re.findall(r"^- `(\w+)`: ", text, re.MULTILINE) == list(encode(fingerprint()))


def test_the_page_of_the_calibration_has_every_key():
    from dataclasses import fields

    from prony.model.facts import GeneratorFitness
    from prony.study.calibration import Calibration, Change, Holding, PartFigure, PartResult
    from prony.study.calibration.run import PARTS

    text = (REFERENCE / "json.md").read_text().partition("## Calibration")[2].partition("## Fingerprint")[0]
    kinds = (Calibration, PartResult, Change, PartFigure, Holding, GeneratorFitness)
    names = {field.name for kind in kinds for field in fields(kind)}
    assert words_that_head(text) == names | {"version"}
    assert all(f"`{name}`" in text for name in PARTS)


SECURITY = DOCS / "security.md"


def test_each_test_that_the_page_on_security_names_is_there():
    named = re.findall(r"`(tests/[^`:]+)::(\w+)`", SECURITY.read_text())
    assert len(named) > 20
    missing = [f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text()]
    assert missing == []


def section(title):
    """Return a part of the page on security."""
    return re.search(rf"^## {title}\n(.*?)(?=^## )", SECURITY.read_text(), re.MULTILINE | re.DOTALL)[1]


def promises(title):
    """Return the promises of a part, items and rows, in one line each, with the tests that each names."""
    rows = re.findall(r"^\| ((?!promise \|).*)", section(title), re.MULTILINE)
    items = rows + re.findall(r"^- (.*?)(?=^\S|^$|\Z)", section(title), re.MULTILINE | re.DOTALL)
    return {" ".join(item.partition("\n  - ")[0].split()): NAMED_TEST.findall(item) for item in items}


@cache
def slow_tests(file):
    """Return the tests of a file of which no part runs but in the slow layer."""
    tree = ast.parse((ROOT / file).read_text())
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    marks = {node.name: [ast.unparse(mark) for mark in node.decorator_list] for node in defined}
    everywhere = any("mark.slow" in ast.unparse(node) for node in tree.body if is_pytestmark(node))
    return {name for name in marks if everywhere or {"pytest.mark.slow", "slow"} & set(marks[name])}


def is_pytestmark(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


@pytest.mark.parametrize("title", ["Archives", "Subjects", "Builds", "The machine"])
def test_each_promise_of_the_page_on_security_names_a_test_that_is_not_slow(title):
    assert len(promises(title)) >= 6
    often = {
        words: [f"{file}::{name}" for file, name in named if name not in slow_tests(file)]
        for words, named in promises(title).items()
    }
    assert [words for words, tests in often.items() if not tests] == []


MISTAKES = tomllib.loads((ROOT / "tests/mistakes.toml").read_text())


@pytest.mark.parametrize("number", MISTAKES)
def test_every_known_mistake_has_a_test_or_says_what_prony_lacks_for_it(number):
    assert bool(reference().tests_of_mistakes().get(number)) is ("open" not in MISTAKES[number])


def test_no_test_bears_the_number_of_a_mistake_that_nobody_knows():
    assert reference().tests_of_mistakes().keys() <= MISTAKES.keys()


@pytest.mark.parametrize("page", [page for page in PAGES if NAMED_TEST.search(page.read_text())], ids=ident)
def test_tests_that_a_page_names_exist(page):
    named = NAMED_TEST.findall(page.read_text())
    missing = [f"{path}::{test}" for path, test in named if f"def {test}(" not in (ROOT / path).read_text()]
    assert not missing

"""What a reader of docs/studies sees first, and every published picture: it can be read alone."""

import html
import re
import shlex
from pathlib import Path

import pytest

from prony.catalog.schema.loader import load_catalog
from prony.catalog.schema.studies import built_in_studies
from prony.plan.build import PlanOptions
from prony.report.page.chart import COLOURS
from prony.study.task import plan_of_source, read_source
from scripts.loading import SCRIPTS

DOCS = SCRIPTS.parent / "docs"
STUDIES = DOCS / "studies"
PICTURES = sorted(STUDIES.glob("*/*.svg"))
ARTICLES = ("wsgi-servers", "embedded-servers", "psgi-servers", "load-scripts", "django-fastcgi")
PAGES = sorted(page for page in STUDIES.glob("*.md") if page.stem.startswith(ARTICLES))
# A page with the options that its archive was measured with, as docs/studies/README.md lists them.
LISTED = re.compile(r"\]\(([\w-]+)\.md\)\s+\(`([^`]+)`")
AGAIN = re.compile(r"- `\./prony run ([^`]+)` \(about [^)]+\): ([^`]+?)(?= - `| !\[| \*Pic)")
MINUTE = "<!-- end of one minute -->"
REPEATS = re.compile(r'"\./prony run ([^"]+)"$', re.MULTILINE)
TEXT = re.compile(r"<text[^>]*>([^<]+)</text>")
# Of an axis, or in the text that stands beside a mark.
UNITS = ("/s", "%", "ms", "µs", "MiB", "ratio")


def words(picture):
    """Return the texts of a picture; what stands in lines of its own is one."""
    drawn = picture.read_text(encoding="utf-8").replace("<tspan", "<text").replace("</tspan", "</text")
    return [html.unescape(text) for text in TEXT.findall(drawn)]


def colours(picture):
    """Return the colours of subjects in a picture."""
    return {one for one in COLOURS if one in picture.read_text(encoding="utf-8")}


def subjects(page):
    """Return what the rows of a page's tables are named by; of settings, each level."""
    text = page.read_text(encoding="utf-8").replace("\\", "").replace("**", "")
    rows = {row.strip() for row in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)}
    return rows | set(re.findall(r"\b(?:threads|tls|wire)=\w+", text))


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: f"{one.parent.name}/{one.stem}")
def test_a_published_picture_names_subjects_load_unit_number_of_trials_and_day(picture):
    said = words(picture)
    assert not [text for text in said if text.endswith("…")]
    rows = subjects(STUDIES / f"{picture.parent.name}.md")
    # Beside what was published a subject has its load behind it.
    named = {text.partition(", ")[0] for text in said} & rows
    # Of ratios the first has no row: the title says whom they are to.
    named |= {text.removeprefix("To ") for text in said if text.startswith("To ")}
    assert len(named) >= len(colours(picture)) > 0, (named, colours(picture))
    assert any(re.search(r"(?i)(closed|open) loop, |against reference", text) for text in said)
    assert any(re.search(r", n = \d+, 20\d\d-\d\d-\d\d$", text) for text in said)
    assert "s" in said or any(unit in text for text in said for unit in UNITS)


def test_each_picture_is_shown_and_each_that_is_shown_is_there():
    shown = {
        STUDIES / name
        for page in STUDIES.glob("*.md")
        for name in re.findall(r"^!\[.*\]\(([^)]+\.svg)\)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert shown == set(PICTURES)


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.stem)
def test_a_page_says_first_what_was_claimed_what_holds_and_why_and_shows_it(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("!["))
    said = [line.split("**")[1] for line in lines[:first] if line.startswith("- **")]
    assert said[:4] == ["Claimed", "Today", "Why it came out so", "Take today"]
    assert said[4:] in (["Again"], [])
    assert first < 35
    headings = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert headings[0] == "Why the published figures came out so"
    last = headings.index("Which would I take today?")
    assert headings[last + 1 :] in ([], ["What changed since the first edition, and why"])


def first_screen(page):
    """Return what stands above the own figures of a page, as one line."""
    return " ".join(page.read_text(encoding="utf-8").partition(MINUTE)[0].split())


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.stem)
def test_a_first_screen_is_short_and_says_how_to_read_its_figures(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines.index(MINUTE) < 45
    read = "n = 5: five runs. (95 %, or another per cent: a to b): the true value is likely between a and b"
    assert read in first_screen(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.stem)
def test_what_does_not_hold_is_what_the_article_says_beside_what_is_measured(page):
    items = re.findall(r"- \*\*(Does not hold|Open)\*\*: (\*[^*]+\*: today \S)?", first_screen(page))
    assert {title for title, _ in items} >= {"Open"}
    assert [title for title, said in items if not said] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda one: one.stem)
def test_a_page_has_the_command_that_measures_it_again_with_its_options_and_how_long_it_takes(page):
    commands = AGAIN.findall(first_screen(page))
    listed = dict(LISTED.findall((STUDIES / "README.md").read_text(encoding="utf-8")))
    study = next(name for name in ARTICLES if page.stem.startswith(name))
    own = [command for command, gives in commands if gives.endswith("the tables below")]
    assert own == [" ".join([study, *listed.get(page.stem, "").split()])]
    assert [gives for _, gives in commands if gives.startswith("the figures")]


def commands_of_studies():
    """Return the words of each command of minute.toml and causes.toml that measures a study again."""
    texts = [(STUDIES / name).read_text(encoding="utf-8") for name in ("minute.toml", "causes.toml")]
    found = [shlex.split(words) for text in texts for words in REPEATS.findall(text)]
    return [words for words in found if words[0] in built_in_studies()]


@pytest.mark.parametrize("words", commands_of_studies(), ids=" ".join)
def test_a_command_that_repeats_a_study_is_of_a_profile_subjects_and_loads_that_it_has(words):
    pairs = list(zip(words[1::2], words[2::2], strict=True))
    asked = dict(pairs)
    known_options = {"--profile", "--only", "-c", "--connections", "--repeats", "--rounds", "--cross-check"}
    assert set(asked) <= known_options
    levels = asked.get("-c") or asked.get("--connections")
    options = PlanOptions(
        profile=asked.get("--profile", "quick"),
        only=tuple(value for option, value in pairs if option == "--only"),
        connections=tuple(map(int, levels.split(","))) if levels else None,
    )
    known = load_catalog(found=Path("none"))
    assert plan_of_source(words[0], read_source(words[0]), known, options).cells


def test_the_page_of_five_benchmarks_is_short_and_each_item_has_its_evidence():
    text = (DOCS / "five-benchmarks.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    before_questions = text.partition("## What to ask")[0]
    items = re.findall(r"^- (?:.+\n)(?:  .+\n)*", before_questions, re.MULTILINE)
    assert len(items) > 20
    chapters = re.split(r"^## ", before_questions, flags=re.MULTILINE)[1:]
    assert all(chapter.count("](") >= chapter.count("\n- ") - 1 for chapter in chapters)
    assert [one for one in items if "](" not in one] == []

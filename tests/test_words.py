"""Plain words in the product: what can be held of them by a rule."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "prony"

# Reports, messages and docs say *report, show, print, name*: "tell" is a person's word. "Cannot tell" is a
# verdict of a claim, and means that the figures do not decide.
TELLING = re.compile(r"(?i)(?<![a-z])(?<!cannot[ _])(tell|tells|told|telling)(?![a-z])")
# Old or ambiguous words of this code, each with a plain one in its place.
ARCHAIC = re.compile(r"(?i)\b(can ?not be had|be had|mends?|mended|anew|spoilt|forebear|beforehand|dear)\b")

# The sentence is part of a page that servers send, and its length is a part of the app's contract.
CONTENT = PACKAGE / "catalog" / "apps" / "django-postgres" / "app.toml"

DATA = ("*.toml", "*.csv", "*.md")
ERRORS = {"UsageError", "HostError", "SubjectError", "EngineError", "ArchiveError"}


def texts() -> list[Path]:
    """Return the catalogue's texts and the Rust sources."""
    data = [path for kind in DATA for path in (PACKAGE / "catalog").rglob(kind) if path != CONTENT]
    return sorted([*data, *(ROOT / "crates").rglob("*.rs")])


def python_words(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string, comment, and name of a function, class or constant."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)):
                yield node.lineno, text
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if (
                name.isupper()
            ):
                yield node.lineno, name


def found(pattern: re.Pattern[str], words: Iterator[tuple[int, str]], path: Path) -> list[str]:
    """Return each place in ``path`` where a text has ``pattern``."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {hit[0]}: {text.strip()[:80]!r}"
        for line, text in words
        if (hit := pattern.search(text))
    ]


@pytest.mark.parametrize("pattern", [TELLING, ARCHAIC], ids=["tell", "archaic"])
def test_the_words_of_the_code_are_plain(pattern):
    wrong = [one for path in everywhere() for one in found(pattern, python_words(path.read_text()), path)]
    assert wrong == []


@pytest.mark.parametrize("pattern", [TELLING, ARCHAIC], ids=["tell", "archaic"])
def test_the_words_of_the_catalogue_and_of_rust_are_plain(pattern):
    wrong = [
        one
        for path in texts()
        for one in found(pattern, iter(enumerate(path.read_text().splitlines(), 1)), path)
    ]
    assert wrong == []


def raised(source: str) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield each error that is made with a literal message: the call, its first and its last literal text."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str(text)), *_]) if name in ERRORS:
                yield node, text, text
            case ast.Call(func=ast.Name(id=name), args=[ast.JoinedStr(values=[*parts]), *_]) if (
                name in ERRORS
            ):
                yield node, literal(parts[0]), literal(parts[-1])


def literal(part: ast.expr) -> str:
    """Return the text of a part of an f-string; empty for a value."""
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""


# Names that begin with a capital are no beginning of a sentence.
PROPER = re.compile(r"^(Prony|Little's law|CPython|`|--|[A-Z]{2,})")


def everywhere() -> list[Path]:
    """Return all Python files of the product: the rules hold in every folder."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def test_messages_of_errors_begin_in_lower_case():
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {first!r}"
        for path in everywhere()
        for call, first, _ in raised(path.read_text())
        if first[:1].isupper() and not PROPER.match(first)
    ]
    assert wrong == []


def test_messages_of_errors_have_no_full_stop_at_their_end():
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {last!r}"
        for path in everywhere()
        for call, _, last in raised(path.read_text())
        if last.endswith(".") and not last.endswith("...")
    ]
    assert wrong == []


def hints(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and beginning of each literal hint."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "hint":
            match node.value:
                case ast.Constant(value=str(text)):
                    yield node.value.lineno, text
                case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
                    yield node.value.lineno, text


def test_hints_begin_in_lower_case_and_have_no_full_stop():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in everywhere()
        for line, text in hints(path.read_text())
        if (text[:1].isupper() and not PROPER.match(text))
        or (text.endswith(".") and not text.endswith("..."))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "pattern"),
    [
        ('"""Tell what runs."""', TELLING),
        ("x = 1  # what it told", TELLING),
        ("def is_told_by_role(): ...", TELLING),
        ("NOT_TOLD = 1", TELLING),
        ('f"it tells {x}"', TELLING),
        ('"the server cannot be had"', ARCHAIC),
    ],
)
def test_the_rules_see_docstrings_comments_names_and_messages(source, pattern):
    assert [text for _, text in python_words(source) if pattern.search(text)]


@pytest.mark.parametrize("text", ["cannot tell", "CANNOT_TELL", "storyteller", "intelligence"])
def test_the_verdict_and_other_words_pass(text):
    assert not TELLING.search(text)

"""Built-in studies: one TOML file for each, with the published figures next to it; and how to read them."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from prony.catalog import DATA, readable
from prony.catalog.schema.studies.check import check_study, grid_of
from prony.catalog.schema.studies.originals import read_originals
from prony.catalog.schema.toml_source import problems_error, read_toml, validate
from prony.core.errors import UsageError
from prony.model.claims import Original
from prony.plan.document import StudyDocument

FOLDER = DATA / "studies"


@dataclass(frozen=True, slots=True)
class StudySource:
    """A study: its document, its text verbatim, and the published figures."""

    document: StudyDocument
    text: str
    originals: tuple[Original, ...] = ()


@readable()
def built_in_studies() -> dict[str, Path]:
    """Return the built-in studies' files by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}


def read_study(name: str) -> StudySource:
    """Return the study ``name``: a built-in one, or a file's path.

    *Errors*: UsageError with all problems of the file, or with the most similar name.
    """
    built_in = built_in_studies()
    file = built_in.get(name) or Path(name)
    if name not in built_in and not file.is_file():
        near = get_close_matches(name, built_in, n=1)
        hint = (
            f"did you mean `{near[0]}`?"
            if near
            else f"built-in studies: {', '.join(built_in)}; or name a TOML file"
        )
        raise UsageError(f"there is no study `{name}`", hint=hint)
    return _read(file)


def _read(file: Path) -> StudySource:
    source = read_toml(file)
    document = validate(source, StudyDocument)
    grid = grid_of(document)
    problems = check_study(document, grid)
    if problems:
        raise problems_error(source, problems)
    originals = read_originals(file.parent / document.originals, grid) if document.originals else ()
    return StudySource(document, source.text, originals)

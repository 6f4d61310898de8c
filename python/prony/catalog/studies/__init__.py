"""Built-in studies: one TOML file each, and how a study's file is read."""

from difflib import get_close_matches
from pathlib import Path

from prony.catalog.toml_source import read_toml, validate
from prony.errors import UsageError
from prony.plan import StudyDocument

__all__ = ["built_in_studies", "read_study"]

FOLDER = Path(__file__).parent


def built_in_studies() -> dict[str, Path]:
    """Return the built-in studies' files by name."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.toml"))}


def read_study(name: str) -> tuple[StudyDocument, str]:
    """Return the study that ``name``, a built-in one or a file's path, describes, with its text verbatim.

    *Errors*: UsageError with all that is wrong in the file, or naming the nearest study.
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
    return validate(read_toml(file), StudyDocument), file.read_text(encoding="utf-8")

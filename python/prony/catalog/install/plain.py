r"""Requirements by which no package's code need run: names and versions, for which wheels may be there.

A path, an address, an option or a variable is not plain: uv would build it, or read what the line names. Must
not know how packages are installed.

>>> lines_of_plain("flask==3.1.3  # ours\nsix>=1.2; python_version < '4'\n")
('flask==3.1.3', "six>=1.2; python_version < '4'")
>>> lines_of_plain("-e ./mine\n") is lines_of_plain("./mine") is lines_of_plain("mine-1-py3-none-any.whl")
True
"""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from prony.units import KIB

# Each takes a time in proportion to what it reads: no part gives back what it has taken.
# Source: PEP 508, and requirements files of pip for `--hash`.
# Not of an option.
_DASH = r"(?<=[a-z0-9.])-(?=[a-z0-9])"
_LINE = re.compile(
    rf"[a-z0-9][a-z0-9._-]*+\s*+(?:\[[a-z0-9._, -]*+\])?+(?:[a-z0-9.*+!_,<>=~ ()]|{_DASH})*+"
    rf"(?:;(?:[a-z0-9.*+!_,<>=~ ()'\"]|{_DASH})*+)?+(?:\s*+--hash=sha256:[0-9a-f]{{64}})*+",
    re.IGNORECASE | re.ASCII,
)
_LOCKED = re.compile(
    r"[^=<>~! ]++==[^=<>~!*, ;]++(?: ?;[^-]*+)?+(?: ?--hash=sha256:[0-9a-f]{64})++", re.ASCII
)
# A file beside the app may be named without a slash.
_FILE = re.compile(r"\S+\.(?:whl|zip|tgz|tbz|txz|tlz|tar)\b|\S+\.tar\.", re.IGNORECASE)
_COMMENT = re.compile(r"(?:^|\s)#.*")
# Keys in keys take the library a time in proportion to their square.
_MOST_OF_PROJECT = 64 * KIB


def lines_of_plain(text: str) -> tuple[str, ...] | None:
    """Return the requirements in a file's text, each in a line; None: one of them is not plain."""
    lines = (_COMMENT.sub("", line).strip() for line in text.replace("\\\n", " ").splitlines())
    found = tuple(line for line in lines if line)
    return found if are_plain(found) else None


def are_plain(lines: Iterable[str]) -> bool:
    """Return whether these requirements are names with versions."""
    return all(_LINE.fullmatch(line) and not _FILE.match(line) for line in lines)


def plain_requirements(file: Path) -> tuple[str, ...] | None:
    """Return what a requirements.txt or a pyproject.toml asks for; None: it is not plain.

    *Errors*: OSError.
    """
    text = file.read_text(errors="replace")
    if file.name != "pyproject.toml":
        return lines_of_plain(text) if file.suffix == ".txt" else None
    if len(text) > _MOST_OF_PROJECT:
        return None
    try:
        content = tomllib.loads(text)
        project = content["project"]
        is_static = "dependencies" not in project.get("dynamic", ()) and "uv" not in content.get("tool", {})
        lines = tuple(str(line) for line in project.get("dependencies", ()))
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, TypeError):
        return None
    return lines if is_static and are_plain(lines) else None


def is_locked(text: str) -> bool:
    """Return whether each line of a lock is one version of a package, with its hashes."""
    lines = lines_of_plain(text)
    return lines is not None and all(_LOCKED.fullmatch(re.sub(r"\s+", " ", line)) for line in lines)

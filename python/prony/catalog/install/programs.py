"""The system's programs that an entry needs: their paths and versions.

Searches where subjects will search, not on the caller's PATH. Must not know environments.

>>> version_in("perl 5, version 36: Starman 0.4016")
'0.4016'
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.catalog.install.access import may
from prony.catalog.install.child import Children
from prony.catalog.install.uv import cause, probe_environment
from prony.catalog.schema.entry import ProcessEntry, PythonInstall, SystemInstall
from prony.catalog.schema.expression import fill
from prony.runas import SUBJECT_PATH, RunAs

VERSION_UNKNOWN = "unknown"
"""The version of a program that works but does not print its version."""

_EXECUTE = 1
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of testing the system's installation of an entry.

    ``version`` null: it does not work, and ``reason`` says why; `VERSION_UNKNOWN`: it works.
    """

    programs: Mapping[str, Path]
    version: str | None
    interpreter: str = ""
    reason: str = ""


def find_programs(candidates: Mapping[str, Sequence[str]], user: RunAs) -> dict[str, Path]:
    """Return the path of each program; programs that ``user`` cannot execute are left out."""
    found = {name: _first(paths, user) for name, paths in candidates.items()}
    return {name: path for name, path in found.items() if path}


def try_system(
    entry: ProcessEntry, install: SystemInstall | PythonInstall, user: RunAs, children: Children
) -> Tried:
    """Find the programs of ``entry`` and ask for their version, as the user that will run them."""
    programs = find_programs(install.programs, user)
    absent = [name for name in install.programs if name not in programs]
    if absent:
        names = ", ".join(f"`{name}`" for name in absent)
        return Tried(programs, None, reason=f"the user `{user.name}` cannot find or run the program {names}")
    if install.version is None:
        return Tried(programs, VERSION_UNKNOWN)
    environment = probe_environment(user)
    texts = {name: str(path) for name, path in programs.items()}
    done = children.run([fill(word, texts) for word in install.version], environment, Path("/"))
    if not done.ok:
        return Tried(programs, None, reason=f"`{entry.name}` does not work: {cause(done)}")
    version = version_in(done.output) or version_in(done.log)
    interpreter = ""
    if isinstance(install, SystemInstall) and install.interpreter:
        answer = children.run([fill(word, texts) for word in install.interpreter], environment, Path("/"))
        if not answer.ok:
            return Tried(programs, None, reason=f"`{entry.name}` does not work: {cause(answer)}")
        interpreter = (answer.output.strip() or answer.log.strip()).partition("\n")[0]
    return Tried(programs, version or VERSION_UNKNOWN, interpreter)


def version_in(text: str) -> str | None:
    """Return the last number with a dot in the first line that has one: the version; else null.

    >>> version_in("go version go1.26.8 linux/amd64")
    '1.26.8'
    """
    for line in text.splitlines():
        numbers = _NUMBER.findall(line)
        if numbers:
            return str(numbers[-1])
    return None


def _first(paths: Sequence[str], user: RunAs) -> Path | None:
    for path in paths:
        if path.startswith("/"):
            matches = sorted(Path("/").glob(path.lstrip("/")), key=_by_number, reverse=True)
        else:
            found = shutil.which(path, path=SUBJECT_PATH)
            matches = [Path(found)] if found else []
        for match in matches:
            if _may_run(match, user):
                return match
    return None


def _by_number(path: Path) -> list[int]:
    """Order `/usr/lib/x/9.6/bin` before `/usr/lib/x/15/bin`."""
    return [int(number) for number in re.findall(r"\d+", str(path))]


def _may_run(path: Path, user: RunAs) -> bool:
    # The folders first: in a closed one, Python does not answer whether there is a file.
    resolved = path.resolve()
    is_reached = all(may(parent, user, _EXECUTE) for parent in resolved.parents)
    return is_reached and may(resolved, user, _EXECUTE) and resolved.is_file()

"""Which exact packages an environment holds: a server's committed lock, or one resolved for a user's app.

Must not know how environments are built.
"""

import hashlib
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.catalog import DATA, readable
from prony.catalog.install.access import first_unreadable
from prony.catalog.install.child import FinishedCommand
from prony.catalog.install.environment import Declared
from prony.catalog.install.interpreter import Interpreter
from prony.catalog.install.plain import are_plain, is_locked, plain_requirements
from prony.catalog.install.project import project_state
from prony.catalog.install.uv import Uv, cause, last_words
from prony.catalog.schema.apps import BUILT_IN_APPS
from prony.catalog.schema.entry import AppEntry, ProcessEntry, PythonInstall, ServerEntry
from prony.catalog.schema.toml_source import read_toml, validate
from prony.drafts import write_whole
from prony.runas import RunAs, make_passable
from prony.temporary import temporary_folder
from prony.units import MIB, format_bytes

LOCKS = DATA / "locks"

# Of what says what an app needs: Prony itself reads it.
_MOST_BYTES = 16 * MIB
_NAME = re.compile(r"\s*[A-Za-z0-9][A-Za-z0-9._-]*(\s*\[[^\]]*\])?")


@dataclass(frozen=True, slots=True)
class Lock:
    """Exact versions of all packages. ``project``: the folder in which its relative paths begin, where it may
    have any; ``own``: it comes with Prony.
    """

    text: str
    project: Path | None = None
    own: bool = False

    @property
    def digest(self) -> str:
        """The SHA-256 of the text, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def lines(self) -> tuple[str, ...]:
        """The packages, each in a line with its hashes."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return tuple(line for line in lines if line.strip() and not line.startswith(("#", " ", "--")))

    @property
    def hashed(self) -> bool:
        """Whether all packages have hashes, which are then required."""
        return self.own or all("--hash=" in line for line in self.lines)

    @property
    def versions(self) -> tuple[str, ...]:
        r"""The packages with their versions alone, as constraints.

        >>> Lock("six==1.17.0 \\\n    --hash=sha256:0\n").versions
        ('six==1.17.0',)
        """
        return tuple(line.partition("--hash=")[0].rstrip() for line in self.lines)


_NOTHING = Declared()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to resolve together: a server, and what an app needs: a built-in one, or a user's own."""

    server: ProcessEntry
    install: PythonInstall
    requirements: tuple[str, ...] = ()
    declared: Declared = _NOTHING

    @property
    def file(self) -> Path | None:
        """The user's file, as an absolute path; relative ones in it are relative to its folder."""
        return self.declared.file.absolute() if self.declared.file else None

    @property
    def lines(self) -> tuple[str, ...]:
        """The app's requirements that are no file."""
        return (*self.requirements, *self.declared.lines)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """There is no set of packages that satisfies server and app; ``log`` has uv's message."""

    reason: str
    log: str


@readable()
def built_in_requirements(python: str | None = None) -> tuple[str, ...]:
    """Return the requirements of all built-in apps for a minor version of Python, the usual one if null,
    sorted.
    """
    entries = [validate(read_toml(file), AppEntry) for file in sorted(BUILT_IN_APPS.glob("*/app.toml"))]
    fitting = [entry for entry in entries if entry.python == python]
    return tuple(sorted({requirement for entry in fitting for requirement in entry.requirements}))


def shared_requirements(server: ProcessEntry) -> tuple[str, ...]:
    """Return which of the built-in apps' requirements the server's own environment and lock satisfy.

    Those of the apps for the Python that it needs; none if it is not a server, or needs none.
    """
    install = server.install
    python = install.python if isinstance(install, PythonInstall) else None
    return built_in_requirements(python) if isinstance(server, ServerEntry) else ()


@readable()
def committed_lock(server: ProcessEntry, app_requirements: Sequence[str]) -> Lock | None:
    """Return the server's lock that comes with Prony; null: there is none, or the app needs other
    packages.
    """
    file = LOCKS / f"{server.name}.txt"
    if not file.is_file() or not set(app_requirements) <= set(shared_requirements(server)):
        return None
    return Lock(file.read_text(), own=True)


def resolve_lock(uv: Uv, user: RunAs, interpreter: Interpreter, wanted: Wanted) -> Lock | Unresolved:
    """Resolve server and app together; if the server's pins conflict with the app's, the app's win.

    The result is cached, and used until something that it depends on changes.
    """
    refused = _refused(wanted.file, user) if wanted.file else None
    if refused:
        return refused
    kept = _kept_file(user, interpreter, wanted)
    if kept.is_file() and _self_contained(wanted.file):
        return _lock(kept.read_text())
    pins = wanted.install.requirements
    done = _compile(uv, user, interpreter, wanted, pins)
    if not done.ok and pins:
        # Only a conflict loosens a pin: a pin that cannot be installed by itself is an error.
        alone = _compile(uv, user, interpreter, Wanted(wanted.server, wanted.install), pins)
        if not alone.ok:
            return Unresolved(
                f"`{wanted.server.name}` cannot be installed: {cause(alone)}", last_words(alone)
            )
        done = _compile(uv, user, interpreter, wanted, _relaxed(pins))
    if done.ok:
        write_whole(kept, done.output)
        kept.chmod(0o644)
        return _lock(done.output, wanted.file)
    app = f"`{wanted.file}`" if wanted.file else ", ".join(f"`{name}`" for name in wanted.lines)
    together = f"`{wanted.server.name}` and {app or 'nothing else'} cannot be installed together"
    return Unresolved(f"{together}: {cause(done)}", last_words(done))


def _lock(text: str, file: Path | None = None) -> Lock:
    """Return what uv resolved. Only a folder or a repository of the user's own has no hash; then those of the
    others are still compared.
    """
    lock = Lock(text)
    if file is None or is_locked(text):
        return lock
    # Two apps may have the same line for different packages: `./mine`.
    return Lock(f"# in {file.parent}, {project_state(lock.lines, file.parent)}\n{text}", file.parent)


def _compile(
    uv: Uv, user: RunAs, interpreter: Interpreter, wanted: Wanted, pins: Sequence[str]
) -> FinishedCommand:
    with temporary_folder("resolve", _folder(user)) as draft:
        draft.chmod(0o755)
        overrides = _written(draft / "overrides.txt", wanted.install.overrides)
        locked = _written(draft / "constraints.txt", wanted.declared.constraints)
        options = ["--python", str(interpreter.path), "--no-header", "--no-annotate", "--generate-hashes"]
        options += ["--override", str(overrides), "--constraint", str(locked)]
        plain = _plain(wanted, pins)
        if plain is not None:
            source = _written(draft / "plain.in", plain)
            done = uv.fetch("pip", "compile", *options, "--only-binary", ":all:", str(source))
            if done.ok and is_locked(done.output):
                return done
        source = _written(draft / "requirements.in", (*pins, *wanted.lines))
        files = [str(source), *([wanted.file.name] if wanted.file else [])]
        return uv.build("pip", "compile", *options, *files, project=wanted.file and wanted.file.parent)


def _plain(wanted: Wanted, pins: Sequence[str]) -> tuple[str, ...] | None:
    """Return all that is asked for, if no code need run to resolve it; else None."""
    of_file = plain_requirements(wanted.file) if wanted.file else ()
    lines = (*pins, *wanted.lines, *(of_file or ()))
    others = (*wanted.install.overrides, *wanted.declared.constraints)
    return lines if of_file is not None and are_plain((*lines, *others)) else None


def _written(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("".join(f"{line}\n" for line in lines))
    file.chmod(0o644)
    return file


def _refused(file: Path, user: RunAs) -> Unresolved | None:
    if not file.is_file():
        return Unresolved(f"`{file}` does not exist; expected a requirements.txt or a pyproject.toml", "")
    if (size := file.stat().st_size) > _MOST_BYTES:
        most = format_bytes(_MOST_BYTES)
        return Unresolved(f"`{file}` has {format_bytes(size)}; expected at most {most}", "")
    blocked = first_unreadable(file, user)
    if blocked:
        return Unresolved(
            f"servers run as the user `{user.name}`, who cannot read `{file}` (no access to `{blocked}`)",
            "",
        )
    return None


def _relaxed(requirements: Sequence[str]) -> tuple[str, ...]:
    names = [_NAME.match(requirement) for requirement in requirements]
    return tuple(match.group(0).strip() for match in names if match)


def _kept_file(user: RunAs, interpreter: Interpreter, wanted: Wanted) -> Path:
    server = wanted.server
    parts = [server.name, *wanted.install.requirements, "", *wanted.install.overrides, ""]
    parts += [*wanted.lines, "", *wanted.declared.constraints, ""]
    parts += [interpreter.name, platform.machine()]
    if wanted.file:
        parts += [str(wanted.file), wanted.file.read_text(errors="replace")]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return _folder(user) / f"{server.name}-{digest[:16]}.txt"


def _self_contained(file: Path | None) -> bool:
    """Return whether only the file's text decides: no includes, local folders or dynamic projects."""
    return file is None or (file.suffix == ".txt" and plain_requirements(file) is not None)


def _folder(user: RunAs) -> Path:
    folder = user.cache / "locks"
    make_passable(folder)
    return folder

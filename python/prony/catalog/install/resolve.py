r"""Which exact packages an environment holds: a server's committed lock, or one resolved for a user's app.

Requirements are plain where they are names and versions alone, for which wheels may be there: a path, an
address, an option or a variable uv would build, or read what the line names.

Each lock that comes with Prony holds a server's pins and, unless the server needs a Python of its own, the
requirements of all built-in apps, for every platform, with hashes and without the name of any package index.
`relock` resolves again what a pin leaves open.

>>> lines_of_plain("flask==3.1.3  # ours\nsix>=1.2; python_version < '4'\n")
('flask==3.1.3', "six>=1.2; python_version < '4'")
>>> lines_of_plain("-e ./mine\n") is lines_of_plain("./mine") is lines_of_plain("mine-1-py3-none-any.whl")
True
"""

import hashlib
import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from prony.catalog import DATA, readable
from prony.catalog.install.child import FinishedCommand, project_state
from prony.catalog.install.environment import Declared
from prony.catalog.install.interpreter import LEAST_OF_UV, OLDEST, Interpreter
from prony.catalog.install.pip_settings import configuration_files, home_folder, uv_settings
from prony.catalog.install.uv import Uv, cause, last_words
from prony.catalog.schema.apps import BUILT_IN_APPS
from prony.catalog.schema.entry import AppEntry, ProcessEntry, PythonInstall, ServerEntry
from prony.catalog.schema.toml_source import read_toml, validate
from prony.core.atomic_files import write_whole
from prony.core.errors import HostError, UsageError
from prony.core.safe_text import shortened
from prony.core.temporary import temporary_folder
from prony.core.units import KIB, MIB, format_bytes
from prony.core.users import RunAs, find_uv, first_unreadable, make_passable

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
    """Return the requirements of all built-in apps for a minor version of Python, the usual one if None,
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
    """Return the server's lock that comes with Prony; None: there is none, or the app needs other
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
        try:
            lock = _lock(done.output, wanted.file)
        except (OSError, ValueError) as error:
            # What is built can write the lines, too.
            why = shortened(str(error), 200)
            return Unresolved(f"`{wanted.server.name}` cannot be installed: {why}", last_words(done))
        write_whole(kept, done.output)
        kept.chmod(0o644)
        return lock
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


# --- requirements by which no package's code need run -----------------------------------------------------


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


# --- the locks that come with Prony -----------------------------------------------------------------------


def relock(entry: ProcessEntry) -> bool:
    """Write a new lock for an entry that comes with Prony, and return whether it has changed.

    A server that the system installs has no lock.

    *Errors*: UsageError when no set of packages satisfies it; HostError when it cannot be written.
    """
    if not isinstance(entry.install, PythonInstall):
        return False
    file = LOCKS / f"{entry.name}.txt"
    text = _resolved(entry, entry.install)
    if file.is_file() and file.read_text() == text:
        return False
    try:
        write_whole(file, text)
    except OSError as error:
        raise HostError(f"cannot write `{file}`: {error.strerror}") from error
    return True


def _resolved(entry: ProcessEntry, install: PythonInstall) -> str:
    wanted = [*install.requirements, *shared_requirements(entry)]
    options = ["--generate-hashes", *_resolution(install.python)]
    quiet = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    known = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment = known | uv_settings(os.environ, configuration_files(os.environ, home_folder()))
    with NamedTemporaryFile("w", prefix="overrides-", suffix=".txt") as overrides:
        overrides.writelines(f"{line}\n" for line in install.overrides)
        overrides.flush()
        done = subprocess.run(
            [find_uv(), "pip", "compile", *options, *quiet, "--override", overrides.name, "-"],
            input="\n".join(one for one in wanted if one not in install.hashes),
            env=environment | {"UV_PYTHON_DOWNLOADS": "never"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise UsageError(f"`{entry.name}` cannot be locked:\n{done.stderr}")
    return done.stdout + "".join(_locked(one, digest) for one, digest in install.hashes.items())


def _locked(requirement: str, digest: str) -> str:
    return f"{requirement} \\\n    --hash={digest}\n"


def _resolution(python: str | None) -> tuple[str, ...]:
    """Return for what is resolved. uv knows no Python before 3.8; there an entry names all that it needs."""
    oldest = ".".join(map(str, OLDEST))
    if python and tuple(map(int, python.split("."))) < LEAST_OF_UV:
        return ("--no-deps", "--python-version", oldest)
    return ("--universal", "--python-version", python or oldest)

"""Runs uv as the user that builds, with its cache inside Prony's, and with pip's settings.

Must not know servers or environments.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from prony.catalog.install.access import first_unreadable
from prony.catalog.install.build_variables import passes_to_own_uv, passes_to_tools, passes_to_uv
from prony.catalog.install.child import Children, FinishedCommand
from prony.catalog.install.pip_settings import configuration_files, home_folder, uv_settings
from prony.errors import HostError
from prony.runas import SUBJECT_PATH, RunAs, find_uv, own_folder

# Lines of uv's output that do not name the cause.
_NO_CAUSE = (
    *("Using ", "Creating ", "Resolved ", "Activate ", "Downloading ", "Downloaded ", "Building ", "Built "),
    *("No solution found", "warning:", "hint:"),
)

_LONGEST_CAUSE = 400


@dataclass(frozen=True, slots=True)
class Uv:
    """uv at ``path``, with its ``environment``; it runs in ``folder``, which holds no project."""

    path: str
    environment: Mapping[str, str]
    folder: Path
    children: Children

    def run(self, *arguments: str, folder: Path | None = None) -> FinishedCommand:
        """Run uv with ``arguments`` and return how it ended.

        *Errors*: OSError when the disk is full.
        """
        command = [self.path, "--no-progress", "--color", "never", *arguments]
        by = self.children.builder
        done = self.children.run(command, self.environment, folder or self.folder, by=by)
        done.check_room(self.folder)
        return done


def open_uv(children: Children) -> Uv:
    """Return uv, ready to run as the user that builds.

    *Errors*: HostError when there is none, or the cache cannot be written.
    """
    builder = children.builder
    home = _home(builder)
    return Uv(_program(children), _environment(builder, home), home, children)


def build_environment(builder: RunAs) -> dict[str, str]:
    """Return the environment of commands that build an entry.

    Programs are searched where subjects will find them; tools store downloads below Prony's cache.

    *Errors*: HostError when the cache cannot be written.
    """
    return _tool_environment(builder, _home(builder))


def probe_environment(user: RunAs) -> dict[str, str]:
    """Return the environment of commands that print an entry's version, as the user that runs it.

    Their home is an empty folder that nobody writes: what one subject left there would be read by the next.

    *Errors*: HostError when the cache cannot be written.
    """
    return _tool_environment(user, own_folder(user.cache / "empty", replace(user, drop=False), 0o555))


def _tool_environment(user: RunAs, home: Path) -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if passes_to_tools(name)}
    if "SSL_CERT_FILE" in passed:
        passed["SSL_CERT_FILE"] = _readable(Path(passed["SSL_CERT_FILE"]), user)
    return {
        **passed,
        "PATH": SUBJECT_PATH,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _home(builder: RunAs) -> Path:
    """Return the folder of the user that builds, which no other user can enter: what tools keep between
    builds, such as unpacked packages, gets into the next one.
    """
    return own_folder(own_folder(builder.cache / f"builder-{builder.name}", builder, 0o700) / "home", builder)


def last_words(done: FinishedCommand, count: int = 12) -> str:
    """Return the last lines of a command's standard error, or else of its standard output."""
    lines = [line.rstrip() for line in (done.log.strip() or done.output.strip()).splitlines()]
    return "\n".join(lines[-count:])


def cause(done: FinishedCommand) -> str:
    """Return in a line or two why a command failed, from its standard error.

    >>> cause(FinishedCommand(1, "", "error: No solution found\\n  cause: Because a needs b"))
    'Because a needs b'
    >>> cause(FinishedCommand(1, "", "error: Request failed\\n  cause: Connection refused"))
    'Request failed: Connection refused'
    """
    words = ""
    for line in done.log.splitlines():
        stripped = line.strip(" ×╰─▶│├·").removeprefix("error: ")
        if stripped and not stripped.startswith(_NO_CAUSE):
            joint = ": " if stripped.startswith("cause: ") else " "
            words += (joint if words else "") + stripped.removeprefix("cause: ")
    words = words or f"it ended with status {done.status} and without a message"
    return words if len(words) <= _LONGEST_CAUSE else f"{words[:_LONGEST_CAUSE]}…"


def _environment(builder: RunAs, home: Path) -> dict[str, str]:
    own = dict(os.environ)
    settings = own | uv_settings(own, configuration_files(own, home_folder()))
    passes = passes_to_uv if builder.drop else passes_to_own_uv
    environment = {name: value for name, value in settings.items() if passes(name)}
    if builder.drop:
        environment["HOME"] = str(home)
    if "SSL_CERT_FILE" in environment:
        environment["SSL_CERT_FILE"] = _readable(Path(environment["SSL_CERT_FILE"]), builder)
    # Copies: a file that several environments share would be changed in all of them.
    fixed = {"UV_LINK_MODE": "copy", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    return environment | {"UV_CACHE_DIR": str(home.with_name("uv"))} | fixed


def _program(children: Children) -> str:
    path, builder = find_uv(), children.builder
    asked = [path, "--version"]
    if not builder.drop or children.run(asked, {"PATH": os.defpath}, Path("/"), by=builder).ok:
        return path
    return _copied(Path(path), builder)


def _readable(file: Path, user: RunAs) -> str:
    return str(file) if not file.is_file() or first_unreadable(file, user) is None else _copied(file, user)


def _copied(file: Path, user: RunAs) -> str:
    """Copy ``file`` into the cache, where ``user`` can read and run it, and return the copy's path."""
    status = file.stat()
    target = user.cache / "tools" / f"{file.stem}-{status.st_size}-{status.st_mtime_ns}{file.suffix}"
    if not target.exists():
        draft = target.with_name(f".draft-{os.getpid()}-{target.name}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.parent.chmod(0o755)
            shutil.copyfile(file, draft)
            draft.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
            draft.rename(target)
        except OSError as error:
            raise HostError(
                f"cannot copy `{file}` to `{target}`: {error.strerror}",
                hint="choose another place with the environment variable PRONY_CACHE",
            ) from error
    return str(target)

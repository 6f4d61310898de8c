"""Environments: what a server, frontend or service needs to run around an app, wanted or had.

For Python servers that is a virtual environment, locked and cached; for the system's own programs, where
they are. Must not know how they are built (`build`, `prepare`), nor how servers are started.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prony.catalog.schema.entry import ProcessEntry

__all__ = ["Environment", "EnvironmentRequest", "Unavailable"]


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """One environment that is wanted; ``key`` names it to the caller.

    ``app_requirements``: what the app needs, as requirement strings; ``requirements_file``: the same as the
    user's ``requirements.txt`` or ``pyproject.toml``. ``python``: the user's own environment (its folder or
    its interpreter), taken as it stands. ``app_folder`` and ``app_digest``: the app, where what is built
    reads it.
    """

    key: str
    server: ProcessEntry
    app_requirements: tuple[str, ...] | None = None
    requirements_file: Path | None = None
    python: Path | None = None
    app_folder: Path | None = None
    app_digest: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that works.

    ``version`` is the server's, ``interpreter`` what it runs on, such as ``CPython 3.11.2``; null or empty:
    not told. ``python`` is the interpreter and ``bin`` the folder of the programs of a virtual environment,
    null without one; ``packages`` maps normal names to versions, ``lock_digest`` is the SHA-256 of the lock
    (empty for a user's own environment). ``programs``: where the system's programs are, by their names in
    the entry; ``build``: the folder with what was built; ``prony``: that with Prony's own compiled part.
    """

    key: str
    version: str | None
    interpreter: str = ""
    python: Path | None = None
    bin: Path | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    lock_digest: str = ""
    programs: Mapping[str, Path] = field(default_factory=dict)
    build: Path | None = None
    prony: Path | None = None

    @property
    def places(self) -> Mapping[str, str]:
        """What placeholders stand for: ``python``, ``bin``, ``build``, ``prony`` and the programs."""
        own = {
            "python": self.python,
            "bin": self.bin,
            "build": self.build,
            "prony": self.prony,
            **self.programs,
        }
        return {name: str(path) for name, path in own.items() if path is not None}

    @property
    def shown_places(self) -> Mapping[str, str]:
        """Those of them that a person's own command has too: where the system's programs are."""
        build = {"build": str(self.build)} if self.build else {}
        return {**build, **{name: str(path) for name, path in self.programs.items()}}


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An environment that cannot be had: why, in a sentence, and the last lines of what was tried."""

    key: str
    reason: str
    log: str

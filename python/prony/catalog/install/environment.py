"""Environments: what a server, frontend or service needs to run with an app, requested or available.

For Python servers this is a virtual environment, locked and cached; for the system's own programs, their
paths.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prony.catalog.schema.entry import ProcessEntry


@dataclass(frozen=True, slots=True)
class Declared:
    """What a user's app declares that it needs: a ``file`` that uv reads, such as ``requirements.txt``;
    requirements in ``lines``; and, as ``constraints``, the exact versions of what is locked.
    """

    file: Path | None = None
    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """A request for an environment; ``key`` identifies it for the caller.

    ``app_requirements``: what a built-in app needs, as requirement strings; ``declared``: what a user's app
    declares, null for a built-in one. ``python``: the user's own environment (its folder or its
    interpreter), used as it is, or another interpreter to build one for. ``app_folder`` and ``app_digest``:
    the app, for builds that read it.
    """

    key: str
    server: ProcessEntry
    app_requirements: tuple[str, ...] | None = None
    declared: Declared | None = None
    python: Path | None = None
    app_folder: Path | None = None
    app_digest: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that works.

    ``version`` is the server's, ``interpreter`` what it runs on, such as ``CPython 3.11.2``; null or empty:
    not known. ``python`` is the interpreter and ``bin`` the folder of programs of a virtual environment, null
    without one; ``packages`` maps normal names to versions, ``lock_digest`` is the SHA-256 of the lock (empty
    for a user's own environment). ``programs``: the paths of the system's programs, by their names in the
    entry; ``build``: the folder of the build's product; ``prony``: the folder of Prony's own compiled part.
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
        """The values of placeholders: ``python``, ``bin``, ``build``, ``prony`` and the programs."""
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
        """The values that a person's own command has too: the paths of the system's programs."""
        build = {"build": str(self.build)} if self.build else {}
        return {**build, **{name: str(path) for name, path in self.programs.items()}}


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An unavailable environment: why, in a sentence, and the last lines of the output."""

    key: str
    reason: str
    log: str

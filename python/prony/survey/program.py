"""A program that listens on a port, as its folder describes it: how it is built, and how it is started. Pure.

It is no callable of a server's: it is the server. Must not know how anything is installed.

>>> Folder({"index.php": ""}.get, lambda path: ["index.php"]).has("index.php")
True
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prony.survey.sources import Read

Names = Callable[[str], Sequence[str]]
"""The names in a folder, by its path in the app's folder; none for what is no folder."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The app's folder: the texts of its files, and the names in its folders."""

    read: Read
    names: Names

    def has(self, path: str) -> bool:
        """Return whether there is a file or a folder of this path."""
        return self.read(path) is not None


@dataclass(frozen=True, slots=True)
class Program:
    """How a program is built and started.

    ``name``: of the server that it is. ``source``: what of its folder says how it is started. ``command`` and
    ``build`` may have the placeholders ``host``, ``port`` and ``build`` and those of ``tools``: the system's
    programs, by where they may be. ``build``: commands that run in a copy of the folder; ``product``: the
    file that they leave in ``{build}``. ``is_carried``: it works in ``{build}``, a copy of the whole folder;
    else in the folder. ``packages``: the file that says what is installed, or empty. ``debian``: the packages
    that have the tools.
    """

    name: str
    language: Literal["go", "javascript", "other"]
    source: str
    command: tuple[str, ...]
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    build: tuple[tuple[str, ...], ...] = ()
    product: str = ""
    is_carried: bool = False
    packages: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    debian: tuple[str, ...] = ()

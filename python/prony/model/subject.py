"""What is measured: an app, the server around it, perhaps a frontend before it.

>>> Frontend("nginx", "keepalive").name
'nginx-keepalive'

Whether something can be measured on a machine.

>>> Availability.lacking("wrk").is_here, READY.is_here
(False, True)
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase

from prony.model.exchange import Contract
from prony.model.json_codec import OPTIONAL

# The settings in a subject's name, such as `[workers=4 threads=8]`.
_LEVELS = re.compile(r"\[(?=[^\]]*=)")
_WITH_LEVELS = re.compile(r"\[[^\]]*=[^\]]*\]")


def is_named(name: str, pattern: str) -> bool:
    """Return whether a glob fits a subject's name; brackets around settings stand for themselves.

    >>> is_named("gunicorn[workers=4 threads=8]+hello", "gunicorn[workers=4 *]+*")
    True
    >>> is_named("b+hello", "[ab]+hello")
    True
    """
    return name == pattern or fnmatchcase(name, _LEVELS.sub("[[]", pattern))


class Interface(StrEnum):
    """How a server calls the application."""

    WSGI = "wsgi"
    ASGI = "asgi"
    PSGI = "psgi"
    PHP = "php"
    RACK = "rack"
    NONE = "none"


def is_of(name: str, pattern: str) -> bool:
    """Return whether a glob fits a subject's name, with or without the settings in it.

    >>> is_of("gunicorn@nginx[workers=4]+hello", "*@nginx+hello")
    True
    """
    return is_named(name, pattern) or is_named(_WITH_LEVELS.sub("", name), pattern)


YOURS = "yours"
"""The server that is the command by which an app is served today."""


def yours_of(app: str) -> str:
    """Return the name of the entry that is `YOURS` for this app of a study, each of which has a command."""
    return f"{YOURS}-{app}"


def is_yours(server: str) -> bool:
    """Return whether a server of this name is the command of an app.

    >>> is_yours("yours"), is_yours(yours_of("shop")), is_yours("yoursql")
    (True, True, False)
    """
    return server == YOURS or server.startswith(yours_of(""))


FACTORY_TARGET = "prony_app:app"
"""The target of an app that a factory makes: the same for all servers, each of which would call it in its own
way.
"""


@dataclass(frozen=True, slots=True)
class App:
    """What is served: a folder, and the callable in it.

    ``targets`` maps each interface that the app offers to its ``module:attribute``. ``requirements`` are
    requirement strings, resolved together with the server's. ``digest`` identifies the folder's content
    (SHA-256). ``services``: the services of the catalogue that the app needs. ``root``: the folder, in the
    app's, at which its imports begin, such as ``src``. ``factory``: the call that makes the app, such as
    ``shop:create_app()``, which Prony's own `FACTORY_TARGET` contains.
    """

    name: str
    title: str
    folder: str
    targets: Mapping[Interface, str]
    requirements: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    contract: Contract = Contract()
    environment: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    root: str = field(default="", metadata=OPTIONAL)
    factory: str = field(default="", metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Frontend:
    """What stands in front of a server: an entry of the catalogue's frontends with a variant and settings.

    ``settings`` holds only what differs from the entry's defaults.
    """

    entry: str
    variant: str = ""
    settings: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Entry and variant: ``nginx-keepalive``."""
        return f"{self.entry}-{self.variant}" if self.variant else self.entry


@dataclass(frozen=True, slots=True)
class Subject:
    """A server with settings and an app, perhaps behind a frontend: what is measured.

    ``name`` is unique in a plan (``gunicorn-gthread@nginx+flask-hello``). ``server`` names the catalogue
    entry, ``variant`` one of its presets or is empty. ``settings`` holds only what differs from the entry's
    defaults. ``levels``: of the settings in which subjects of a study differ on purpose, the values that this
    one has (`prony.plan.factors`).
    """

    name: str
    server: str
    app: App
    interface: Interface
    variant: str = ""
    settings: Mapping[str, int | str] = field(default_factory=dict)
    frontend: Frontend | None = None
    levels: Mapping[str, int | str] = field(default_factory=dict, metadata=OPTIONAL)


class AvailabilityKind(StrEnum):
    """What is left to do: nothing, what Prony does itself, or what only the machine's owner can do."""

    READY = "ready"
    INSTALLABLE = "installable"
    LACKING = "lacking"


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a server or a generator can be measured; ``lacks``: missing packages and programs."""

    kind: AvailabilityKind
    lacks: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether the machine has all that Prony does not install itself."""
        return self.kind is not AvailabilityKind.LACKING

    @classmethod
    def lacking(cls, *names: str) -> "Availability":
        """Return that of what lacks these."""
        return cls(AvailabilityKind.LACKING, names)

    @classmethod
    def together(cls, parts: Iterable["Availability"]) -> "Availability":
        """Return that of what is made of ``parts``: what is missing of any, else the least ready."""
        found = tuple(parts)
        missing = tuple(dict.fromkeys(name for one in found for name in one.lacks))
        if missing:
            return cls.lacking(*missing)
        return READY if all(one == READY for one in found) else INSTALLABLE


READY = Availability(AvailabilityKind.READY)
INSTALLABLE = Availability(AvailabilityKind.INSTALLABLE)

"""What makes a subject the same one in another run: everything that the catalogue and the app declare.

Must not know archives or trials.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping

from prony.archive.codec import encode_subject
from prony.catalog.install.environment import Environment
from prony.catalog.schema.entry import ProcessEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import resolved_settings
from prony.model.shapes import Json
from prony.model.subject import Subject

_ABSENT = object()
_LONGEST_VALUE = 80


def identity(catalog: Catalog, subject: Subject, cpus: int, built: Iterable[Environment]) -> Json:
    """Return what ``subject`` is in ``catalog``.

    *Definition*: the entries of the server, the frontend and the services, the subject with its app (its
    digest, and the names but not the values of its environment), all settings with ``cpus`` CPUs, and
    version, interpreter and lock of each environment in ``built``. The paths of files are not part of it.
    """
    front = subject.frontend
    return {
        "subject": _without_places(encode_subject(subject)),
        "server": _said(catalog.server(subject.server)),
        "settings": resolved_settings(catalog.server(subject.server), subject, cpus),
        "frontend": front and _said(catalog.frontends[front.entry]),
        "frontend_settings": front and resolved_settings(catalog.frontends[front.entry], front, cpus),
        "services": {name: _said(catalog.service(name)) for name in subject.app.services},
        "built": [[one.key, one.version, one.interpreter, one.lock_digest] for one in built],
    }


def digest(said: Json) -> str:
    """Return the SHA-256, in hexadecimal, of one JSON text with sorted keys."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def changed_values(old: object, new: object, at: str = "") -> Iterator[str]:
    """Yield the differences between two JSON values in words, each with its place.

    >>> list(changed_values({"a": {"b": 1}, "c": [2]}, {"a": {"b": 3}, "c": [2], "d": None}))
    ['a.b was 1, is 3', 'd was absent, is null']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            yield from changed_values(
                old.get(name, _ABSENT), new.get(name, _ABSENT), f"{at}.{name}" if at else name
            )
    elif old != new:
        yield f"{at} was {_in_words(old)}, is {_in_words(new)}"


def _in_words(value: object) -> str:
    if value is _ABSENT:
        return "absent"
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _said(entry: ProcessEntry) -> Json:
    return entry.model_dump(mode="json", by_alias=True)


def _without_places(subject: Json) -> Json:
    return {**subject, "app": {**subject["app"], "folder": ""}}

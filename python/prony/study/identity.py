"""What makes a subject the same one in another run: all that the catalogue and the app say of it.

Must not know archives or trials.
"""

import hashlib
import json
from collections.abc import Iterable

from prony.archive.codec import encode_subject
from prony.catalog.entry import ProcessEntry
from prony.catalog.environment import Environment
from prony.catalog.loader import Catalog
from prony.catalog.settings import resolved_settings
from prony.model import Json, Subject

__all__ = ["entry_digest"]


def entry_digest(catalog: Catalog, subject: Subject, cpus: int, built: Iterable[Environment]) -> str:
    """Return the SHA-256, in hexadecimal, of what ``subject`` is in ``catalog``.

    *Definition*: over one JSON text with sorted keys: the entries of the server, the frontend and the
    services, the subject with its app (its digest, and names but not values of its environment), all settings
    with ``cpus`` CPUs, and version, interpreter and lock of each environment in ``built``. Where files lie is
    not part of it.
    """
    front = subject.frontend
    said: Json = {
        "subject": _without_places(encode_subject(subject)),
        "server": _said(catalog.server(subject.server)),
        "settings": resolved_settings(catalog.server(subject.server), subject, cpus),
        "frontend": front and _said(catalog.frontends[front.entry]),
        "frontend_settings": front and resolved_settings(catalog.frontends[front.entry], front, cpus),
        "services": {name: _said(catalog.service(name)) for name in subject.app.services},
        "built": [(one.key, one.version, one.interpreter, one.lock_digest) for one in built],
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _said(entry: ProcessEntry) -> Json:
    return entry.model_dump(mode="json", by_alias=True)


def _without_places(subject: Json) -> Json:
    return {**subject, "app": {**subject["app"], "folder": ""}}

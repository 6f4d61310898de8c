"""Settings that were asked for, against the subjects that would take them: before anything is built for them.

Must not know the command line's other options.
"""

from collections.abc import Mapping, Sequence

from prony.catalog.schema.entry import FrontendEntry
from prony.catalog.schema.loader import Catalog
from prony.catalog.schema.settings import resolved_settings
from prony.errors import UsageError
from prony.model import Subject

__all__ = ["check_settings"]


def check_settings(
    asked: Mapping[str, Mapping[str, int | str]], subjects: Sequence[Subject], known: Catalog, cpus: int
) -> None:
    """Return when each of the settings, by server or frontend, is taken by a subject and fits.

    *Errors*: UsageError for one that nothing takes, or a value that does not fit.
    """
    for name in asked:
        _check_taken(name, asked[name], subjects, known)
    for subject in subjects:
        resolved_settings(known.server(subject.server), subject, cpus)
        if subject.frontend:
            resolved_settings(known.frontends[subject.frontend.entry], subject.frontend, cpus)


def _check_taken(
    name: str, settings: Mapping[str, int | str], subjects: Sequence[Subject], known: Catalog
) -> None:
    if any(name in (one.frontend.entry, one.frontend.name) for one in subjects if one.frontend):
        return
    if isinstance(known.entry(name), FrontendEntry):
        raise UsageError(f"`--set {name}...`: no subject stands behind `{name}`, as in gunicorn@{name}")
    entry, variant = known.find(name)
    if not any(one.server == entry.name and variant in ("", one.variant) for one in subjects):
        names = ", ".join(dict.fromkeys(one.name.partition("+")[0] for one in subjects))
        typed = ", ".join(f"{name}.{key}={value}" for key, value in settings.items())
        raise UsageError(f"`--set {typed}`: no subject runs `{name}`; the servers are {names}")

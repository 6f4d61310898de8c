"""A launch's files, in the trial's folder.

Must not know what they hold.

>>> write_files.__name__
'write_files'
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from prony.errors import HostError, SubjectError
from prony.runas import RunAs, own_folder

_READABLE, _SECRET = 0o644, 0o400
_NOTHING: Mapping[str, str] = MappingProxyType({})


def write_files(
    folder: Path, files: Mapping[str, str], user: RunAs, secrets: Mapping[str, str] = _NOTHING
) -> None:
    """Create ``folder`` with these files, named relative to it; ``user`` can read but not change them.
    ``secrets``: files that belong to ``user``, and that nobody else can read.

    *Errors*: SubjectError for a name outside of the folder; HostError when it cannot be written.
    """
    folders = {folder}
    for name, text in {**files, **secrets}.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise SubjectError(f"the file `{name}` lies outside the trial's folder")
        folders |= {one for one in path.parents if one.is_relative_to(folder)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_anew(path, text, user if name in secrets else None)
        except OSError as error:
            raise HostError(f"cannot write `{path}`: {error.strerror}") from error
    # The owner changes when everything is written, inner files first: as long as a folder belongs to Prony,
    # no one else can replace a file with a link, and Prony may be root.
    for one in sorted(folders, key=lambda one: -len(one.parts)):
        own_folder(one, user)


def _write_anew(path: Path, text: str, owner: RunAs | None) -> None:
    """Write a file; with an ``owner`` it is a secret, from its first byte on."""
    # An existing folder may belong to the subject: do not follow a link in it.
    path.unlink(missing_ok=True)
    mode = _READABLE if owner is None else _SECRET
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, mode)
        if owner is not None and owner.drop:
            os.fchown(descriptor, owner.uid, owner.gid)
        file.write(text)

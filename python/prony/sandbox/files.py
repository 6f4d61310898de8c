"""A launch's files, in the trial's folder.

Must not know what they hold.

>>> write_files.__name__
'write_files'
"""

import os
from collections.abc import Mapping
from pathlib import Path

from prony.errors import HostError, SubjectError
from prony.runas import RunAs, own_folder

__all__ = ["write_files"]


def write_files(folder: Path, files: Mapping[str, str], user: RunAs) -> None:
    """Write files, named relative to ``folder``, so that ``user`` can read but not change them.

    *Errors*: SubjectError for a name that leads out of the folder; HostError when it cannot be written.
    """
    for name, text in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise SubjectError(f"the file `{name}` lies outside the trial's folder")
        own_folder(path.parent, user)
        try:
            _write_anew(path, text)
        except OSError as error:
            raise HostError(f"cannot write `{path}`: {error.strerror}") from error


def _write_anew(path: Path, text: str) -> None:
    # The folder is the subject's, and Prony may be root: a link that was planted there must not be followed.
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w") as file:
        os.fchmod(descriptor, 0o644)
        file.write(text)

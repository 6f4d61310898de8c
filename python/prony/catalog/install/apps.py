"""Where servers can read an app: the user's own folder, or a copy of a built-in app in the cache."""

import shutil
from pathlib import Path

from prony.catalog.install.access import first_unreadable
from prony.catalog.install.sealed import sealed_copy
from prony.catalog.schema.apps import app_files, is_built_in
from prony.errors import HostError, UsageError
from prony.model.subject import App
from prony.runas import RunAs
from prony.trees import walk


def materialise_app(app: App, user: RunAs) -> Path:
    """Return a folder with the app that ``user`` can read: for a built-in app a copy, else the app's own.

    *Errors*: UsageError when ``user`` cannot read the app's own folder; HostError when the cache cannot be
    written.
    """
    folder = Path(app.folder)
    if is_built_in(app):
        return _copied(folder, app.digest, user)
    blocked = first_unreadable(folder, user) or _first_closed_file(folder, user)
    if blocked is None:
        return folder
    raise UsageError(
        f"servers run as the user `{user.name}`, who cannot read `{folder}` (no access to `{blocked}`)",
        hint="move the app to a folder that this user can read, or choose another user with `--run-as`",
    )


def _first_closed_file(folder: Path, user: RunAs) -> Path | None:
    if not user.drop:
        return None
    return next((file for file in app_files(folder) if first_unreadable(file, user)), None)


def _copy(folder: Path, draft: Path) -> None:
    for parent, folders, names in walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        place = draft / Path(parent).relative_to(folder)
        place.mkdir(exist_ok=True)
        for name in names:
            shutil.copy(Path(parent, name), place)


def _copied(folder: Path, digest: str, user: RunAs) -> Path:
    target = user.cache / "apps" / f"{folder.name}-{digest[:16]}"
    try:
        return sealed_copy(target, lambda draft: _copy(folder, draft))
    except (OSError, shutil.Error) as error:
        raise HostError(
            f"cannot copy the app `{folder.name}` to `{target}`: {error.strerror or error}",
            hint="choose another place with the environment variable PRONY_CACHE",
        ) from error

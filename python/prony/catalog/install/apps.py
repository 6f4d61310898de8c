"""Where servers can read an app: the user's own folder, or a copy of a built-in app in the cache."""

import shutil
from pathlib import Path
from tempfile import mkdtemp

from prony.catalog.install.access import first_unreadable
from prony.catalog.schema.apps import app_files, is_built_in
from prony.errors import HostError, UsageError
from prony.model import App
from prony.runas import RunAs

__all__ = ["materialise_app"]


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


def _copied(folder: Path, digest: str, user: RunAs) -> Path:
    target = user.cache / "apps" / f"{folder.name}-{digest[:16]}"
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.parent.chmod(0o755)
        # Renamed when complete: an interrupted copy is never mistaken for the app.
        draft = Path(mkdtemp(prefix=".draft-", dir=target.parent))
        shutil.copytree(folder, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        for path in [draft, *draft.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        try:
            draft.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(draft)
    except OSError as error:
        raise HostError(
            f"cannot copy the app `{folder.name}` to `{target}`: {error.strerror}",
            hint="choose another place with the environment variable PRONY_CACHE",
        ) from error
    return target

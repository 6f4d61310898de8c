"""Lists and removes the content of Prony's cache. Must not know what is in an environment."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prony.catalog.install.sealed import remove_tree
from prony.errors import explained


@dataclass(frozen=True, slots=True)
class CacheItem:
    """One folder of the cache. ``kind`` is its parent folder, such as ``environments``."""

    kind: str
    path: Path
    size_bytes: int


@explained("cannot look into the cache", "open its folders, or choose another place with PRONY_CACHE")
def cache_items(cache: Path) -> tuple[CacheItem, ...]:
    """Return the content of ``cache``, by kind and name. Files with several names count once.

    *Errors*: HostError when it cannot be read.
    """
    kinds = sorted(path for path in cache.iterdir() if path.is_dir()) if cache.is_dir() else []
    return tuple(
        CacheItem(kind.name, path, _size_bytes(path))
        for kind in kinds
        for path in sorted(kind.iterdir())
        if path.is_dir()
    )


def remove(item: CacheItem) -> bool:
    """Remove one item; false when a part of it could not be removed."""
    with suppress(OSError):
        remove_tree(item.path)
    return not item.path.exists()


def _size_bytes(folder: Path) -> int:
    seen: dict[tuple[int, int], int] = {}
    for file in _files(folder):
        # Another Prony may remove what it has just finished with.
        with suppress(FileNotFoundError):
            found = file.lstat()
            seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def _files(folder: Path) -> Iterator[Path]:
    for path, _, names in os.walk(folder):
        yield from (Path(path) / name for name in names)

"""Lists and removes the content of Prony's cache. Must not know what is in an environment."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prony.errors import explained
from prony.trees import remove_tree, sizes


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
        CacheItem(kind.name, path, sum(sizes(path).values()))
        for kind in kinds
        for path in sorted(kind.iterdir())
        if path.is_dir()
    )


def remove(item: CacheItem) -> bool:
    """Remove one item; false when a part of it could not be removed."""
    with suppress(OSError):
        remove_tree(item.path)
    return not item.path.exists()

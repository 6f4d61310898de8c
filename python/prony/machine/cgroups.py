"""The control groups that Prony was started in, and the limits that they set.

*Source*: cgroups(7); Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1.

*Source*: proc(5), /proc/meminfo; Linux, Documentation/admin-guide/mm/transhuge.rst.

>>> parse_groups("4:memory:/user/me\\n0::/app")
{'memory': '/user/me', '': '/app'}

>>> parse_meminfo("MemTotal:  2 kB\\nHugePages_Total: 7")["MemTotal"]
2048
"""

from pathlib import Path, PurePosixPath

from prony.core.units import KIB
from prony.machine import Fact, read_fact, unread
from prony.model.json_codec import Json

_ROOT = Path("/sys/fs/cgroup")
# Version 1 writes "none" as the largest multiple of a page.
_NONE = 1 << 62


def cgroup() -> Json:
    """Return the version, the controllers and Prony's own limits, except that of memory."""
    unified = (_ROOT / "cgroup.controllers").exists()
    hybrid = (_ROOT / "unified/cgroup.controllers").exists()
    return {
        "version": 2 if unified else 1,
        "hybrid": hybrid and not unified,
        "controllers": _controllers(unified),
        "cpu_quota": _quota(),
        "pids_limit": limit_of("pids", "pids.max", "pids.max"),
    }


def _controllers(unified: bool) -> Fact:
    if unified:
        return read_fact(_ROOT / "cgroup.controllers", str.split)
    return read_fact(
        Path("/proc/self/cgroup"), lambda text: sorted(name for name in parse_groups(text) if name)
    )


def parse_groups(text: str) -> dict[str, str]:
    """Return the path of the group of each controller of /proc/PID/cgroup; version 2 has the empty name."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        found |= dict.fromkeys(names.split(","), path)
    return found


def limit_in(text: str) -> int | None:
    """Return a limit; None: none.

    *Errors*: ValueError for any other text.
    """
    if text.strip() == "max":
        return None
    value = int(text)
    return value if 0 <= value < _NONE else None


def parse_quota(text: str) -> float | None:
    """Return CPUs from version 2's ``quota period``; None: no quota.

    >>> parse_quota("150000 100000"), parse_quota("max 100000")
    (1.5, None)
    """
    quota, period = text.split()
    return None if quota in ("max", "-1") else int(quota) / int(period)


def lowest_limit(found: list[Fact]) -> Fact:
    """Return the lowest limit of a group and its ancestors: each applies to all groups below it.

    >>> lowest_limit([None, 5, 9]), lowest_limit([None]), lowest_limit([{"missing": "x"}, 3])
    (5, None, 3)
    """
    known = [one for one in found if not isinstance(one, dict)]
    if not known:
        return found[0] if found else unread("there is no control group")
    return min((one for one in known if one is not None), default=None)


def limit_of(controller: str, name: str, name_v1: str) -> Fact:
    """Return the lowest limit from Prony's own group up to the root; None: none."""
    folders, version = _folders(controller)
    file = name if version == 2 else name_v1
    # The root of all groups has no such file and no limit; the root group of a container has one.
    found = [read_fact(folder / file, limit_in) for folder in folders if (folder / file).exists()]
    return lowest_limit(found or [None]) if folders else unread(_absent(controller))


def _absent(controller: str) -> str:
    return f"this machine has no controller `{controller}`"


def _quota() -> Fact:
    folders, version = _folders("cpu")
    if version == 2:
        files = [folder / "cpu.max" for folder in folders]
        found = [read_fact(file, parse_quota) for file in files if file.exists()]
    else:
        found = [_quota_v1(folder) for folder in folders if (folder / "cpu.cfs_quota_us").exists()]
    return lowest_limit(found or [None]) if folders else unread(_absent("cpu"))


def _quota_v1(folder: Path) -> Fact:
    quota, period = (read_fact(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return parse_quota(f"{quota} {period}") if isinstance(quota, str) and isinstance(period, str) else quota


def _folders(controller: str) -> tuple[list[Path], int]:
    """Return the folders of Prony's own group and its ancestors, innermost first, and the version."""
    text = read_fact(Path("/proc/self/cgroup"))
    groups = parse_groups(text) if isinstance(text, str) else {}
    unified = (_ROOT / "cgroup.controllers").exists()
    root = _ROOT if unified else _ROOT / controller
    above = ancestors(root, groups.get("" if unified else controller, "/"))
    return [folder for folder in above if folder.is_dir()], 2 if unified else 1


def ancestors(root: Path, group: str) -> list[Path]:
    """Return the folders of a group and its ancestors, innermost first, the root last.

    A container sees its own group as the root, although its path is that of the host: the caller leaves out
    folders that do not exist.

    >>> [str(path) for path in ancestors(Path("/c"), "/a/b")]
    ['/c/a/b', '/c/a', '/c']
    """
    path = PurePosixPath(group)
    return [root / str(step).lstrip("/") for step in (path, *path.parents)]


# --- memory -----------------------------------------------------------------------------------------------


_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
_UNKNOWN = "`/proc/meminfo` does not say"
_FIELDS = {
    "total_bytes": "MemTotal",
    "available_bytes": "MemAvailable",
    "swap_bytes": "SwapTotal",
    "swap_free_bytes": "SwapFree",
}


def memory() -> Json:
    """Return all facts of the memory."""
    text = read_fact(Path("/proc/meminfo"))
    sizes = parse_meminfo(text) if isinstance(text, str) else {}
    reason = unread(_UNKNOWN) if isinstance(text, str) else text
    return {
        **{fact: sizes.get(name, reason) for fact, name in _FIELDS.items()},
        "zswap": read_fact(Path("/sys/module/zswap/parameters/enabled"), lambda text: text == "Y"),
        "huge_pages": read_fact(_PAGES / "enabled", chosen),
        "huge_pages_defrag": read_fact(_PAGES / "defrag", chosen),
        "huge_pages_reserved": sizes.get("HugePages_Total", reason),
        "limit_bytes": limit_of("memory", "memory.max", "memory.limit_in_bytes"),
    }


def parse_meminfo(text: str) -> dict[str, int]:
    """Return sizes in bytes, and counts where there is no unit."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name.strip()] = int(words[0]) * (KIB if words[1:] == ["kB"] else 1)
    return found


def chosen(text: str) -> str:
    """Return the word in brackets, or the text if there are no brackets.

    >>> chosen("always [madvise] never")
    'madvise'
    """
    return text.partition("[")[2].partition("]")[0] or text

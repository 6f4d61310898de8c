"""Memory: size, swap, huge pages, and the limit that applies to Prony.

*Source*: proc(5), /proc/meminfo; Linux, Documentation/admin-guide/mm/transhuge.rst.

>>> parse_meminfo("MemTotal:  2 kB\\nHugePages_Total: 7")["MemTotal"]
2048
"""

from pathlib import Path

from prony.host.facts.cgroups import limit_of
from prony.host.read import read_fact, unread
from prony.model.shapes import Json
from prony.units import KIB

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

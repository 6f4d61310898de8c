"""How many connections a database of this machine takes, by its command and its configuration.

They are read as files; the database is not asked. What cannot be read is not known.

>>> connection_limits([])
{}
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from prony.core.trees import content
from prony.core.units import MIB

# Without a setting, and of these kept for administrators. *Source*: PostgreSQL documentation, 20.3
# Connections and Authentication; MariaDB and MySQL documentation, max_connections.
_USUAL = {"postgres": (100, 3), "mariadbd": (151, 0), "mysqld": (151, 0)}
_OF_MARIADB = ("/etc/my.cnf", "/etc/mysql/my.cnf", "/etc/mysql/conf.d", "/etc/mysql/mariadb.conf.d")
_TYPED = re.compile(r"^(?:(?:-c|--)?max[-_]connections=|-N\n?)(\d+)$", re.MULTILINE)
_CONFIG_FILE = re.compile(r"(?:-c|--)?config_file=(.+)")
_SET = re.compile(r"^[ \t]*max[-_]connections[ \t]*=?[ \t]*'?(\d+)", re.MULTILINE)


def connection_limits(pids: Iterable[int]) -> dict[str, int]:
    """Return how many connections of applications the databases among processes take, by the program's name;
    of two with one name it is not known who is meant.
    """
    found: dict[str, list[int | None]] = defaultdict(list)
    for pid in pids:
        with suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
            if name in _USUAL:
                found[name].append(_limit(name, Path(f"/proc/{pid}/cmdline").read_text(errors="replace")))
    return {name: limits[0] for name, limits in found.items() if len(limits) == 1 and limits[0] is not None}


def _limit(name: str, command: str) -> int | None:
    words = command.split("\0")
    usual, kept = _USUAL[name]
    if typed := _TYPED.findall("\n".join(words)):
        return int(typed[-1]) - kept
    texts = [text for file in _files(name, words) if (text := _text(file)) is not None]
    said = [number for text in texts for number in _SET.findall(text)]
    return int(said[-1] if said else usual) - kept if texts else None


def _files(name: str, words: Sequence[str]) -> list[Path]:
    """Return the files of a configuration, those that count last at the end."""
    if name == "postgres":
        said = [found[1] for word in words if (found := _CONFIG_FILE.fullmatch(word))]
        data = [value for option, value in pairwise(words) if option == "-D"]
        first = said[-1:] or [f"{folder}/postgresql.conf" for folder in data[-1:]]
        return [Path(one) for one in (*first, *(f"{folder}/postgresql.auto.conf" for folder in data[-1:]))]
    places = [Path(one) for one in _OF_MARIADB]
    return [file for one in places for file in (sorted(one.glob("*.cnf")) if one.is_dir() else [one])]


def _text(file: Path) -> str | None:
    try:
        return content(file, MIB).decode(errors="replace")
    except OSError:
        return None

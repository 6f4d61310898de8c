"""What a shell completes: names of servers, studies and generators, read without the rest of the catalogue.

>>> servers_to("gunicorn,wait")
['gunicorn,waitress']
"""

from collections.abc import Iterable
from pathlib import Path

from prony.catalog import DATA


def _named(folder: str) -> list[str]:
    return sorted(path.stem for path in Path(DATA, folder).glob("*.toml"))


def server_to(incomplete: str) -> list[str]:
    """Return the servers whose names begin so."""
    return [name for name in _named("servers") if name.startswith(incomplete)]


def servers_to(incomplete: str) -> list[str]:
    """Return lists of servers that go on so: the last name is completed."""
    return _in_list(incomplete, _named("servers"))


def studies_to(incomplete: str) -> list[str]:
    """Return the studies whose names begin so."""
    return [name for name in _named("studies") if name.startswith(incomplete)]


def engines_to(incomplete: str) -> list[str]:
    """Return lists of generators that go on so."""
    from prony.engine.registry import ENGINES

    return _in_list(incomplete, sorted(ENGINES))


def _in_list(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

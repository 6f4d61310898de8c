"""What several servers of an app cannot have while all of them live: a port, a file, connections.

Found before they are alive together; who shares it is measured in turns, and named.

>>> at_once({"a+shop": ["listen on port 8080"], "b+shop": [], "c+shop": ["listen on port 8080"]})
[('listen on port 8080', ['a+shop', 'c+shop'])]
"""

import os
import re
import shlex
import stat
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from prony.catalog.discover.configuration import python_values
from prony.core.trees import content
from prony.core.units import MIB
from prony.model.launch import Launch
from prony.plan.order import Turn
from prony.sandbox.contract import listening_ports
from prony.sandbox.identity import descendants, open_files
from prony.sandbox.subject import RunningSubject
from prony.sandbox.watch.others import connection_limits
from prony.study.bench import StudyBench
from prony.study.ledger import Ledger
from prony.study.task import StudyListener

# *Source*: SQLite documentation, Database File Format, 1.3.1: magic header string.
_SQLITE = b"SQLite format 3\0"
_PID_FILE = re.compile(r"\s--?(?:pid|(?:safe-)?pid-?file2?)[ =](\S+)")
_CONFIGURATION = re.compile(r"\s(?:-c|--config)[ =](?:file:)?(\S+\.py)\b")


def at_once(things: Mapping[str, Iterable[str]]) -> list[tuple[str, list[str]]]:
    """Return what more than one subject has, as the end of a sentence, with their names."""
    of_thing: dict[str, list[str]] = defaultdict(list)
    for name, each in things.items():
        for thing in dict.fromkeys(each):
            of_thing[thing].append(name)
    return [(thing, names) for thing, names in of_thing.items() if len(names) > 1]


def held_by(subject: RunningSubject, launch: Launch) -> tuple[str, ...]:
    """Return what a subject has of this machine, and no trial for itself, as ends of sentences: ports that
    Prony has not chosen, databases of SQLite that it keeps open to write, and files with its number.
    """
    pids = descendants(subject.tree_pid)
    ordered = {one.address.port for one in launch.processes}
    ports = set[int]() if subject.seat.network_namespace else set(listening_ports(pids)) - ordered
    return (
        *(f"listen on port {port}" for port in sorted(ports)),
        *(f"keep the database {path} open" for path in _databases(pids)),
        *(f"have the pid file {path}" for path in _pid_files(launch) if _is_everybodys(pids, path)),
    )


def _databases(pids: Collection[int]) -> set[str]:
    return {path for _, link in open_files(pids) if (path := _database(link))}


def _database(link: str) -> str | None:
    """Return the path of a descriptor, if it is an SQLite file, open to write, that is not a trial's own."""
    with suppress(OSError):
        path = os.readlink(link)  # noqa: PTH115 - no path of this process
        # Of a descriptor's link the mode says what it may be used for.
        if path.startswith("/") and os.lstat(link).st_mode & stat.S_IWUSR and _is_same(link, path):
            with open(path, "rb", buffering=0) as opened:  # noqa: PTH123
                return path if opened.read(len(_SQLITE)) == _SQLITE else None
    return None


def _is_everybodys(pids: Collection[int], path: str) -> bool:
    """Return whether a subject has the same file at a path as this process: none in a layer or a `/tmp` of
    its own.
    """
    return any(_is_same(f"/proc/{pid}/root{path}", path) for pid in pids)


def _is_same(one: str, other: str) -> bool:
    with suppress(OSError):
        found = os.stat(one)  # noqa: PTH116
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, os.stat(other))  # noqa: PTH116
    return False


def _pid_files(launch: Launch) -> Iterator[str]:
    """Yield the whole paths of pid files that commands name, or a configuration of Gunicorn's."""
    for one in launch.processes:
        words, folder = f" {shlex.join(one.command)}", Path(one.folder or "/")
        yield from (str(folder / path) for path in _PID_FILE.findall(words))
        if "gunicorn" in words:
            for file in (*_CONFIGURATION.findall(words), "gunicorn.conf.py"):
                with suppress(OSError):
                    text = content(folder / file, MIB).decode(errors="replace")
                    if path := python_values(text, 1, one.environment).get("pidfile"):
                        yield str(folder / path)
                    break


# --- connections ------------------------------------------------------------------------------------------


def leave_crowds(bench: StudyBench, turns: Iterable[Turn], ledger: Ledger, listener: StudyListener) -> None:
    """Measure servers in turns alone that together have more connections open to a database of this machine
    than it takes, as their trials have shown.
    """
    names = {turn.cell.id: turn.cell.subject.name for turn in turns if turn.cell.id not in bench.in_turns}
    opened: dict[str, dict[int, int]] = defaultdict(dict)
    for (cell, *_), entry in ledger.entries.items():
        for one in entry.facts.asked if cell in names else ():
            of_cell = opened[one.name]
            of_cell[cell] = max(one.connections, of_cell.get(cell, 0))
    limits = connection_limits(pid for pid, _ in bench.known.idle) if opened else {}
    for program, each in opened.items():
        limit, needed = limits.get(program), sum(each.values())
        if limit is not None and needed > limit and len(each) > 1:
            bench.in_turns.update(each)
            listener.notice(
                f"{' and '.join(names[cell] for cell in each)} have {needed} connections to {program}, which "
                f"takes {limit}: they are measured in turns"
            )

"""Cleans up what killed Pronys have left on this machine: stops and removes it, and reports that.

Processes and folders are found by the journal, control groups and containers by their marks; nothing else is
touched. Must not know who receives the report.

>>> clear_groups.__name__
'clear_groups'
"""

from collections.abc import Callable

from prony.runas import RunAs
from prony.sandbox import journal
from prony.sandbox.cgroup import remains as cgroups
from prony.sandbox.containers.remains import clear_containers


def clear_and_report(user: RunAs, tell: Callable[[str], None]) -> None:
    """Stop and remove all that dead Pronys have left; report what ran and what could not be removed."""
    for one in journal.clear_remains(user):
        if one.kept:
            tell(f"the remains of run {one.run} are left alone: {one.kept}")
        elif one.processes_ended:
            tell(f"killed {one.processes_ended} processes that run {one.run} had left")
    for told in clear_groups():
        tell(told)


def clear_groups() -> list[str]:
    """Remove containers and control groups of dead Pronys, and return what was done, in words."""
    return [*clear_containers(), *(_words(one) for one in cgroups.clear_subtrees())]


def _words(cleared: cgroups.Cleared) -> str:
    if cleared.kept:
        return f"the control groups `{cleared.name}` are left alone: {cleared.kept}"
    ended = f", with {cleared.processes_killed} processes" if cleared.processes_killed else ""
    return f"removed control groups that a killed Prony had left{ended}"

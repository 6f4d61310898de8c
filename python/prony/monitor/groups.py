"""The kernel's counters of a subject's control groups, over the window.

Must not know the engine or how groups are made.

>>> monitor = GroupCounters(dict)
>>> monitor.open_window(); monitor.close_window(); monitor.deltas()
({}, {})
"""

from collections.abc import Callable, Mapping

from prony.sandbox.cgroup.base import Counters

_NEVER_READ = Counters(missing=dict.fromkeys(Counters.names(), "the window did not open and close"))


class GroupCounters:
    """Reads ``source`` at the start and at the end of the window.

    Deltas are named ``cgroup.<process>.<counter>``, in the units of `prony.sandbox.cgroup.base.Counters`;
    levels and peaks cover the group's whole life.
    """

    def __init__(self, source: Callable[[], Mapping[str, Counters]]) -> None:
        self._source = source
        self._opened: Mapping[str, Counters] = {}
        self._closed: Mapping[str, Counters] = {}

    def open_window(self) -> None:
        """Read the counters at the start of the window."""
        self._opened = self._source()

    def close_window(self) -> None:
        """Read the counters at the end of the window."""
        self._closed = self._source()

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the differences, and the reason for each missing one."""
        found: dict[str, int] = {}
        missing: dict[str, str] = {}
        for name in {**self._opened, **self._closed}:
            counted = self._closed.get(name, _NEVER_READ) - self._opened.get(name, _NEVER_READ)
            for counter in Counters.names():
                value = getattr(counted, counter)
                if value is not None:
                    found[f"cgroup.{name}.{counter}"] = value
                elif counter in counted.missing:
                    missing[f"cgroup.{name}.{counter}"] = counted.missing[counter]
        return found, missing


def oom_kills(counters: Mapping[str, Counters]) -> Mapping[str, int]:
    """Return how many processes the kernel has killed because memory ran out, by part of the subject.

    >>> oom_kills({"server": Counters(oom_kills=2), "frontend": Counters(oom_kills=0)})
    {'server': 2}
    """
    return {name: one.oom_kills for name, one in counters.items() if one.oom_kills}

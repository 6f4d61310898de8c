"""What runs today, as far as a search for settings can start it: it is compared with everything else."""

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prony.core.errors import UsageError

if TYPE_CHECKING:
    from prony.catalog.discover.current import Current
    from prony.catalog.schema.loader import Catalog
    from prony.tune.space import Candidate


@dataclass(frozen=True, slots=True)
class Today:
    """What runs today. ``candidate`` null: nothing, or how many processes it starts could not be read.
    ``current``: the command. ``origin``: where the settings are from that all others are compared with.
    """

    candidate: "Candidate | None" = None
    current: "Current | None" = None
    origin: str = "its default"

    @property
    def server(self) -> str:
        """The catalogue's entry that is tried first; empty: the usual one of the app's interface."""
        is_known = self.current is not None and "--worker-class" not in self.current.lost
        return self.current.server if self.current is not None and is_known else ""

    @property
    def said(self) -> "Current | None":
        """The command whose other options all settings of its server have."""
        return self.current if self.candidate else None

    def catalog(self, known: "Catalog") -> "Catalog":
        """Return the catalogue in which the server of today has the other options of its command, so that
        all settings differ from it in numbers alone.

        *Errors*: UsageError for words that an entry may not have.
        """
        from prony.catalog.schema.command import entry_of_today

        if self.said is None:
            return known
        entry = entry_of_today(known.servers[self.said.server], self.said)
        return replace(known, servers={**known.servers, entry.name: entry})

    def variables(self, typed: Container[str]) -> list[str]:
        """Return the variables of its source as `--env` takes them, without those that were typed."""
        from prony.catalog.discover.servers import SERVERS

        said = self.current.environment if self.current else {}
        # Prony turns these, and uWSGI would read them after its command.
        numbers = {name for server in SERVERS.values() for name in server.variables}
        return [
            f"{name}={value}" for name, value in said.items() if name not in typed and name not in numbers
        ]


def today_of(current: "Current | None", typed: str | None, known: "Catalog") -> Today:
    """Return what runs today by its command; ``typed``: the command where it is typed.

    *Errors*: UsageError for a typed command whose number of processes cannot be read.
    """
    from prony.catalog.discover.servers import ROOTS
    from prony.catalog.schema.command import options_not_set
    from prony.study.equal_share import processes_and_threads
    from prony.tune.space import Candidate

    if current is None:
        return Today()
    counts = processes_and_threads(current, known) if current.server else (None, None)
    unread = ", ".join(current.uncounted)
    if typed is not None and unread:
        raise UsageError(
            f"`--current {typed}`: {unread} cannot be taken over, and the gain would be over something else",
            hint="type its numbers, and a class that Prony knows: --current 'gunicorn -w 4 shop:app'",
        )
    if typed is not None and counts[0] is None:
        raise UsageError(
            f"`--current {typed}`: starts no server whose number of processes is known",
            hint="name one of the catalogue, such as --current 'gunicorn -w 4 shop:app'",
        )
    if unread or counts[0] is None:
        by_itself = "how many processes it starts" if current.server else f"`{current.text}` serves by itself"
        reason = unread or by_itself
        return Today(None, current, f"its default; yours could not be read: {reason}")
    base = known.servers[current.server]
    # Where imports begin is found in the app's folder instead.
    lost = (shown for name, shown in current.lost.items() if name not in ROOTS)
    lacking = ", ".join((*lost, *options_not_set(base, current)))
    origin = f"yours without {lacking}" if lacking else "yours"
    return Today(Candidate(current.server, *counts), current, origin)

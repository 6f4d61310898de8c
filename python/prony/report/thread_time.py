"""Where the time of a server's threads goes, in words: rows of a bar, and a table of several subjects.

The only place that has these words. `at` is where the report's JSON has a diagnosis.
"""

from collections.abc import Iterator, Sequence

from prony.diagnosis import Diagnosis
from prony.report.document import Column, Entry, Table
from prony.report.forms import about_percent, count, whole_percent
from prony.report.text import Figure, Name, Text, Words, pointer, text

Timed = tuple[str, Diagnosis, str]
"""A subject, its diagnosis, and where the JSON has that."""


def time_heading(found: Diagnosis, at: str) -> Text:
    """Return what the bar is, and how fine: no finer than one look."""
    looks = Figure(found.looks, count, at + pointer("looks"))
    return text(
        "Where its threads' time goes, by {} looks at them; the shares add up to {}:", looks, Name("100 %")
    )


def time_rows(found: Diagnosis, at: str) -> Iterator[tuple[Words, Figure]]:
    """Yield each state with its share, the greatest first."""
    for state, share in found.time.items():
        yield state.value, Figure(share, about_percent, at + pointer("time", state.value))


def time_table(found: Sequence[Timed]) -> Table | None:
    """Return the shares of several subjects, a column for each state; null where no thread was looked at."""
    timed = [one for one in found if one[1].time]
    states = list(dict.fromkeys(state for _, one, _ in timed for state in one.time))
    if not states:
        return None
    columns = (Column("threads' time", text=True), *(Column(state.value) for state in states))
    return Table(
        columns,
        tuple(
            (
                Entry(text("{}", Name(name))),
                *(
                    Entry(
                        text("{}", Figure(one.time[state], whole_percent, at + pointer("time", state.value)))
                    )
                    if state in one.time
                    else Entry("")
                    for state in states
                ),
            )
            for name, one, at in timed
        ),
    )

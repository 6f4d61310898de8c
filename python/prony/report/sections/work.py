"""Remarks on the work that subjects do: whether their replies are of one size."""

from collections.abc import Iterator

from prony.reading.study import Reading
from prony.reading.work import Replies, UnequalReplies, unequal_replies
from prony.report.forms import in_metric
from prony.report.places import cell_at
from prony.report.text import EMPTY, Figure, Name, Text, framed, pointer, text
from prony.report.words import group_words


def work_notes(reading: Reading) -> Iterator[Text]:
    """Yield for each load the subjects whose replies differ most in size, where that is more than a tenth."""
    said: set[tuple[str, str]] = set()
    for place, group in enumerate(reading.groups):
        found = None if group.of_generators else unequal_replies(group.cells)
        if found is None or (pair := (found.smallest.cell.name, found.largest.cell.name)) in said:
            continue
        said.add(pair)
        under = framed("", group_words(group, place), ": ") if len(reading.groups) > 1 else EMPTY
        yield text("{}{}", under, _difference(reading, found))


def _difference(reading: Reading, found: UnequalReplies) -> Text:
    parts = (_size(reading, one) for one in (found.smallest, found.largest))
    return text(
        "Replies are not of one size, from {} to {}, heads included: that may be a part of a difference in "
        "speed.",
        *parts,
    )


def _size(reading: Reading, found: Replies) -> Text:
    at = cell_at(reading, found.cell) + pointer("metrics", "reply_bytes", "mean")
    return text("{} ({})", Figure(found.mean_bytes, in_metric("reply_bytes"), at), Name(found.cell.name))

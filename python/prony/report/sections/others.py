"""Other programs that used the CPUs of a study's trials: which, and what to type once they are closed."""

from collections.abc import Iterator

from prony.reading.study import StudyResults
from prony.report.document import Block, Command, Paragraph, Section
from prony.report.forms import about_percent, count
from prony.report.text import EMPTY, Figure, Name, Part, Text, each_of, joined, listed, text


def busiest_words(reading: StudyResults) -> Text:
    """Return which programs used most; empty where that is not known."""
    found = reading.others
    if found is None or not found.busiest:
        return EMPTY
    each = [
        text("{} {}", Name(one.name), Figure(one.share, about_percent, f"/others/busiest/{k}/share"))
        for k, one in enumerate(found.busiest)
    ]
    return joined(each)


def again_blocks(reading: StudyResults) -> Iterator[Block]:
    """Yield what to close, and the command to type then, where other programs have moved a figure."""
    found = reading.others
    if found is not None and found.spoilt and found.command:
        names: list[Part] = [Name(one.name) for one in found.busiest]
        closed = listed(names) if names else "them"
        yield Paragraph(text("For figures without other programs close {}, then type:", closed))
        yield Command(found.command)


def others_section(reading: StudyResults) -> Section | None:
    """Return what other programs did, of which something is known beside their share; None: nothing is."""
    found, named = reading.others, busiest_words(reading)
    if found is None or not (named or found.command):
        return None
    share = Figure(found.share, about_percent, "/others/share")
    numbers = each_of(found, "/others", count, "trials", "of")
    said = text("In {} of {} trials other programs used {} of the CPUs' time", *numbers, share)
    words = text("{} ({}).", said, named) if named else text("{}.", said)
    return Section("Other programs", (Paragraph(words), *again_blocks(reading)))

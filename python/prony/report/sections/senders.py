"""Where the loads of a study came from, if from several generators or from another machine: a line each."""

from collections.abc import Iterator

from prony.reading.senders import Sender
from prony.reading.study import Reading
from prony.report.document import Block, Column, Entry, Paragraph, Section, Table, Tone
from prony.report.findings import limit_kind_words
from prony.report.forms import count, duration
from prony.report.machines import figure_or_dash, kinds_of_machines, plus_minus, root_words
from prony.report.text import Figure, Quote, Text, framed, joined, pointer, text

_COLUMNS = (
    Column("generator", text=True),
    Column("trials"),
    Column("requests"),
    Column("start"),
    Column("known to"),
    Column("was it the limit?", text=True),
)
_MEANING = (
    "Each generator's verdict is its own, on its part of the load. start: how far from the common start it "
    "began at most, as far as its clock is known. Each latency is of one clock."
)


def senders_section(reading: Reading) -> Section | None:
    """Return the table of the generators, and on what machines they were; null where there was one alone,
    beside the servers.
    """
    found = tuple((pointer("machines", k), one) for k, one in enumerate(reading.machines))
    if not found:
        return None
    rows = tuple(_row(one, at) for at, one in found)
    blocks: list[Block] = [Table(_COLUMNS, rows), Paragraph(_MEANING, Tone.QUIET)]
    where = kinds_of_machines([(one.name, one.fingerprint) for _, one in found], "machines")
    blocks += [Paragraph(text("Load from {}", words), Tone.QUIET) for words in where]
    blocks += root_words((at + pointer("name"), one.name) for at, one in found if one.as_root)
    return Section("Where the load came from", tuple(blocks))


def _row(one: Sender, at: str) -> tuple[Entry, ...]:
    return (
        Entry(text("{}", Quote(one.name, at + pointer("name")))),
        figure_or_dash(one.trials, count, at + pointer("trials")),
        figure_or_dash(one.requests, count, at + pointer("requests")),
        figure_or_dash(one.start_skew_ns, duration, at + pointer("start_skew_ns")),
        figure_or_dash(one.clock_bound_ns, plus_minus, at + pointer("clock_bound_ns")),
        _verdict(one, at),
    )


def _verdict(one: Sender, at: str) -> Entry:
    """Return in how many trials it was the limit, in how many of these for certain, and by what."""
    if not one.limited:
        return Entry(text("no"))
    names = {"limited": one.limited, "trials": one.trials, "certain": one.certain}
    figures = (Figure(value, count, at + pointer(name)) for name, value in names.items())
    words = text("in {} of {}, for certain in {}", *figures)
    return Entry(text("{}{}", words, framed(": ", joined(_reasons(one, at), by="; "))), Tone.WARNING)


def _reasons(one: Sender, at: str) -> Iterator[Text]:
    for kind, trials in sorted(one.limits.items(), key=lambda item: -item[1]):
        yield text("{} ({})", limit_kind_words(kind), Figure(trials, count, at + pointer("limits", kind)))

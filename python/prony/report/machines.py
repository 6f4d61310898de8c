"""The generators of a load that several machines sent: one line each.

>>> lost_words(())
()
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prony.model.facts import Fingerprint
from prony.model.limit import Limited
from prony.model.recording import GeneratorMachine
from prony.report.document import Block, Entry, Paragraph, Section, Table, Tone, headed
from prony.report.findings import limit_words
from prony.report.forms import as_typed, count, duration
from prony.report.text import Figure, Part, Quote, Text, joined, listed, pointer, text

WORDS = ("generator", "was it the limit?")
"""The columns of the generators' tables that are words."""
_TITLES = ("generator", "requests", "p50", "p99", "start", "known to", WORDS[1])
_MEANING = (
    "p50, p99: of its own valid replies. start: how long after the common start it began, as far as its "
    "clock is known. Each latency is of one clock. A dash: of too few requests."
)
_VERDICTS = {Limited.NO.value: "no", Limited.SUSPECT.value: "perhaps", Limited.YES.value: "yes"}
_NOTHING = Entry(text("—"))


def lost_words(machines: Sequence[GeneratorMachine]) -> tuple[Paragraph, ...]:
    """Return that generators were lost and which; none where the account is that of all."""
    lost = [(k, machine) for k, machine in enumerate(machines) if machine.lost]
    if not lost:
        return ()
    names = joined(
        text("{} ({})", Quote(one.name, _at(k, "name")), Quote(one.lost or "", _at(k, "lost")))
        for k, one in lost
    )
    of = Figure(len(machines), as_typed, pointer("machines"))
    number = Figure(len(lost), as_typed, pointer("lost_machines"))
    words = text("Partial: {} of {} generators lost: {}. All figures are of the others.", number, of, names)
    return (Paragraph(words, Tone.BAD),)


def machines_section(machines: Sequence[GeneratorMachine]) -> Section:
    """Return the table of the generators."""
    rows = tuple(_row(k, machine) for k, machine in enumerate(machines))
    blocks: list[Block] = [Table(headed(*_TITLES, words=WORDS), rows), Paragraph(_MEANING, Tone.QUIET)]
    where = kinds_of_machines([(one.name, one.fingerprint) for one in machines], "machines")
    blocks += [Paragraph(words, Tone.QUIET) for words in where]
    blocks += root_words((_at(k, "name"), one.name) for k, one in enumerate(machines) if one.as_root)
    return Section("Generators", tuple(blocks))


def root_words(names: Iterable[tuple[str, str]]) -> Iterator[Paragraph]:
    """Yield that generators ran as root and which; nothing where none did. ``names``: each with its place in
    the JSON.
    """
    quotes = [Quote(name, at) for at, name in names]
    if quotes:
        words = "Ran as root: {}. Whoever holds the fleet's certificates is root there: take another user."
        yield Paragraph(text(words, listed(quotes)), Tone.WARNING)


def kinds_of_machines(machines: Sequence[tuple[str, Fingerprint | None]], place: str) -> Iterator[Text]:
    """Yield a line for each kind of machine: which generators were on it.

    ``place``: where the JSON has them, in this order.
    """
    kinds: dict[str, tuple[Text, list[Quote]]] = {}
    for k, (name, fingerprint) in enumerate(machines):
        if fingerprint is not None and (words := _machine(fingerprint, pointer(place, k, "fingerprint"))):
            kinds.setdefault(str(words), (words, []))[1].append(Quote(name, pointer(place, k, "name")))
    for words, names in kinds.values():
        yield text("{}: {}.", listed(names), words)


def _machine(one: Fingerprint, at: str) -> Text:
    """Return a machine in words; what it does not say is left out."""
    cpus = one.fact("cpu", "available")
    named = (("cpu", "model"), ("machine",), ("kernel", "release"))
    parts: list[Part] = [
        Quote(fact, at + pointer(*path)) for path in named if isinstance(fact := one.fact(*path), str)
    ]
    if isinstance(cpus, int):
        parts.append(text("CPUs: {}", Figure(cpus, as_typed, at + pointer("cpu", "available"))))
    return joined(parts)


def _row(k: int, one: GeneratorMachine) -> tuple[Entry, ...]:
    name = Entry.of(Quote(one.name, _at(k, "name")))
    if one.lost:
        return (name, *[_NOTHING] * (len(_TITLES) - 2), Entry(text("lost"), Tone.BAD))
    limits = (limit_words(limit, _at(k, "evidence", str(n))) for n, limit in enumerate(one.evidence))
    verdict = _VERDICTS.get(one.limited or "", "—")
    words = text(f"{verdict}: {{}}", joined(limits, by="; ")) if one.evidence else text(verdict)
    tone = Tone.PLAIN if one.limited == Limited.NO.value else Tone.WARNING
    return (
        name,
        figure_or_dash(one.requests, count, _at(k, "requests")),
        figure_or_dash(one.ok_p50_ns, duration, _at(k, "ok_p50_ns")),
        figure_or_dash(one.ok_p99_ns, duration, _at(k, "ok_p99_ns")),
        figure_or_dash(one.start_skew_ns, _signed, _at(k, "start_skew_ns")),
        figure_or_dash(one.clock_bound_ns, plus_minus, _at(k, "clock_bound_ns")),
        Entry(words, tone),
    )


def figure_or_dash(value: float | None, form: Callable[[float], str], at: str) -> Entry:
    """Return a cell with a value, or with a dash where there is none. ``at``: where the JSON has it."""
    return _NOTHING if value is None else Entry.of(Figure(value, form, at))


def _signed(value_ns: float) -> str:
    sign = "-" if value_ns < 0 else "+"
    return f"{sign}{duration(abs(value_ns))}"


def plus_minus(value_ns: float) -> str:
    """Return a time as the bound of another.

    >>> plus_minus(2_000_000)
    '± 2.00 ms'
    """
    return f"± {duration(value_ns)}"


def _at(k: int, *names: str) -> str:
    return pointer("machines", k, *names)

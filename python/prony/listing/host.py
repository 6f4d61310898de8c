"""The report of `prony host`: the machine in one line, and what is not fit for a measurement."""

from collections.abc import Sequence
from typing import Protocol

from prony.calibration import Calibration
from prony.listing.calibration import summary
from prony.model import Fingerprint
from prony.report.document import Block, Cell, Column, Command, Document, Paragraph, Section, Table, Tone
from prony.report.words import machine_words

__all__ = ["Check", "host_document"]

_NOT_CALIBRATED = "Not measured on this machine as it is now: `prony calibrate` does."
_LEVELS = {"ok": ("ok", Tone.GOOD), "warn": ("look", Tone.WARNING), "fail": ("fails", Tone.BAD)}


class Check(Protocol):
    """One preflight check."""

    @property
    def name(self) -> str:
        """What is checked."""

    @property
    def level(self) -> str:
        """`ok`, `warn` or `fail`."""

    @property
    def found(self) -> str:
        """What the machine has."""

    @property
    def wanted(self) -> str:
        """What a measurement needs."""

    @property
    def command(self) -> str | None:
        """The command that mends it, if anything does."""


def _row(check: Check) -> tuple[Cell, ...]:
    word, tone = _LEVELS.get(check.level, (check.level, Tone.PLAIN))
    return Cell(check.name), Cell(word, tone), Cell(check.found), Cell(check.wanted)


def host_document(
    fingerprint: Fingerprint, checks: Sequence[Check], calibration: Calibration | None = None
) -> Document:
    """Return the report of a machine: each check, the commands that mend those that are not ok, and what
    Prony costs here.
    """
    titles = ("check", "state", "found", "wanted")
    table = Table(tuple(Column(title, text=True) for title in titles), tuple(_row(check) for check in checks))
    commands = [check.command for check in checks if check.level != "ok" and check.command]
    sections = [Section("", (Paragraph(machine_words(fingerprint), Tone.QUIET),)), Section("", (table,))]
    if commands:
        blocks: tuple[Block, ...] = tuple(Command(command) for command in commands)
        sections.append(Section("To mend it", blocks))
    told = summary(calibration) if calibration else (Paragraph(_NOT_CALIBRATED, Tone.QUIET),)
    sections.append(Section("What Prony costs here", told))
    return Document("This machine", tuple(sections))

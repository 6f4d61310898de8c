"""The report of `prony host`: the machine in one line, and whether it is fit for a measurement."""

from collections.abc import Sequence
from typing import Protocol

from prony.calibration import Calibration
from prony.listing.calibration import summary
from prony.model import Fingerprint
from prony.report.document import Block, Column, Command, Document, Entry, Paragraph, Section, Table, Tone
from prony.report.words import machine_words

__all__ = ["ShownCheck", "host_document"]

_NOT_CALIBRATED = "Not measured yet on this machine as it is now; run `prony calibrate`."
_LEVELS = {"ok": ("ok", Tone.GOOD), "warn": ("look", Tone.WARNING), "fail": ("fails", Tone.BAD)}


class ShownCheck(Protocol):
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
        """The command that fixes it, if there is one."""


def _row(check: ShownCheck) -> tuple[Entry, ...]:
    word, tone = _LEVELS.get(check.level, (check.level, Tone.PLAIN))
    return Entry(check.name), Entry(word, tone), Entry(check.found), Entry(check.wanted)


def host_document(
    fingerprint: Fingerprint, checks: Sequence[ShownCheck], calibration: Calibration | None = None
) -> Document:
    """Return the report of a machine: each check, the commands that fix those that are not ok, and what Prony
    costs here.
    """
    titles = ("check", "state", "found", "wanted")
    table = Table(tuple(Column(title, text=True) for title in titles), tuple(_row(check) for check in checks))
    commands = [check.command for check in checks if check.level != "ok" and check.command]
    sections = [Section("", (Paragraph(machine_words(fingerprint), Tone.QUIET),)), Section("", (table,))]
    if commands:
        blocks: tuple[Block, ...] = tuple(Command(command) for command in commands)
        sections.append(Section("How to fix it", blocks))
    told = summary(calibration) if calibration else (Paragraph(_NOT_CALIBRATED, Tone.QUIET),)
    sections.append(Section("What Prony costs here", told))
    return Document("This machine", tuple(sections))

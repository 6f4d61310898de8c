"""The report of `prony host`: the machine in one line, and whether it is fit for a measurement."""

from collections.abc import Sequence
from typing import Protocol

from prony.calibration.result import Calibration, to_json
from prony.listing.calibration import summary
from prony.model.facts import Fingerprint
from prony.model.shapes import Json, encode
from prony.report.document import Block, Column, Command, Document, Entry, Paragraph, Section, Table, Tone
from prony.report.text import Name, Quote, pointer, text
from prony.report.words import machine_words

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


def _row(check: ShownCheck, at: str) -> tuple[Entry, ...]:
    word, tone = _LEVELS.get(check.level, (check.level, Tone.PLAIN))
    found, wanted = Quote(check.found, at + pointer("found")), Quote(check.wanted, at + pointer("wanted"))
    name = Entry(text("{}", Name(check.name)))
    return name, Entry(word, tone), Entry(text("{}", found)), Entry(text("{}", wanted))


def host_document(
    fingerprint: Fingerprint, checks: Sequence[ShownCheck], calibration: Calibration | None = None
) -> Document:
    """Return the report of a machine: each check, the commands that fix those that are not ok, and what Prony
    costs here.
    """
    titles = ("check", "state", "found", "wanted")
    rows = tuple(_row(check, pointer("preflight", k)) for k, check in enumerate(checks))
    table = Table(tuple(Column(title, text=True) for title in titles), rows)
    commands = [check.command for check in checks if check.level != "ok" and check.command]
    sections = [Section("", (Paragraph(machine_words(fingerprint), Tone.QUIET),)), Section("", (table,))]
    if commands:
        blocks: tuple[Block, ...] = tuple(Command(command) for command in commands)
        sections.append(Section("How to fix it", blocks))
    not_calibrated = (Paragraph(_NOT_CALIBRATED, Tone.QUIET),)
    costs = summary(calibration, "/calibration") if calibration else not_calibrated
    sections.append(Section("What Prony costs here", costs))
    return Document("This machine", tuple(sections))


def host_json(
    fingerprint: Fingerprint, checks: Sequence[ShownCheck], calibration: Calibration | None = None
) -> Json:
    """Return the same as data."""
    names = ("name", "level", "found", "wanted", "command")
    return {
        "fingerprint": encode(fingerprint),
        "preflight": [{name: getattr(check, name) for name in names} for check in checks],
        "calibration": to_json(calibration) if calibration else None,
    }

"""Pages and pictures of archives, where they are asked for, and beside an archive when a study ends."""

import os
import socket
import subprocess
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from prony.cli.options import write_html
from prony.cli.patience import archives_below
from prony.cli.talk import say
from prony.core.atomic_files import write_whole
from prony.core.errors import HostError, UsageError
from prony.core.version import own_command

if TYPE_CHECKING:
    from prony.model.plan import Plan
    from prony.reading.study import StudyResults
    from prony.reading.traces import Traces
    from prony.report.publication import Redaction

_T = TypeVar("_T")

# A page of 60 cells takes a tenth of it.
_LONGEST_S = 120


def write_page(file: Path, out: str, *, redact: bool = False, force: bool = False) -> None:
    """Write the page of an archive. ``redact``: without paths, host, environment and logs;
    ``force``: subjects whose pace was not steady enter verdicts.

    *Errors*: ArchiveError, UsageError for a target that cannot be written.
    """
    page, _, _ = _page(file, redact=redact, force=force)
    write_html(page, out)


def _page(file: Path, *, redact: bool, force: bool) -> "tuple[str, StudyResults, Redaction | None]":
    """Return a page, what it is made of, and what was taken out, if it was."""
    from prony.report.page.study import page_of_study

    (reading, found), redaction = _read(file, redact=redact, force=force)
    page = page_of_study(reading, found, passed_on=redact)
    return proved(page, redaction), reading, redaction


def place_beside(file: Path) -> Path:
    """Return where the page of an archive lies: never where a file of the user's may be, as `shop.html`."""
    return file.with_name(f"{file.name}.html")


def page_beside(file: Path) -> Path | None:
    """Write the page of a study beside its archive and return it; None, and a line that says why, where that
    is not possible: the study is measured all the same.

    A process of its own draws: whatever happens to it or its memory, this one ends as the study did. It ends
    with this one.
    """
    from prony.sandbox.linux import die_with_parent

    page = place_beside(file)
    command = own_command("report", str(file), "--html", str(page))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            # The archive is the user's own.
            env={**os.environ, "PRONY_READING_S": str(_LONGEST_S)},
            check=False,
            preexec_fn=die_with_parent,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"the page `{page}` was not written: {error}")
        return None
    if done.returncode:
        reason = done.stderr.strip().partition("\n")[0].removeprefix("error: ")
        say(f"the page `{page}` was not written: {reason or f'status {done.returncode}'}")
        return None
    return page


def write_figures(file: Path, folder: Path, *, redact: bool = False, force: bool = False) -> None:
    """Write every chart of an archive as SVG and PNG into a new folder.

    *Errors*: ArchiveError, UsageError for a folder that exists or cannot be made.
    """
    from prony.report.page.study import pictures_of_study

    read, redaction = _read(file, redact=redact, force=force)
    write_pictures(pictures_of_study(*read), folder, redaction)


def write_pictures(
    files: Iterable[tuple[str, bytes]], folder: Path, redaction: "Redaction | None" = None
) -> None:
    """Write pictures, by name, into a new folder, whole or not at all; errors as `write_figures`."""
    from prony.report.formats.csv_files import new_folder

    with new_folder(folder, partial(proved, redaction=redaction)) as unfinished:
        for name, content in files:
            (unfinished / name).write_bytes(content)


def write_site(places: Sequence[Path], folder: Path, *, redact: bool = False, force: bool = False) -> None:
    """Write the pages of archives, and of all archives in folders, with an index into a new folder.

    *Errors*: ArchiveError, UsageError for a folder without archives, or a target that exists.
    """
    from prony.report.formats.csv_files import new_folder
    from prony.report.page.study import index_entry, index_page

    archives = [file for place in places for file in _archives(place)]
    with new_folder(folder) as unfinished:
        entries, redactions = [], []
        for file, own in zip(archives, names_of(archives, redact=redact), strict=True):
            page, reading, redaction = _page(file, redact=redact, force=force)
            write_whole(unfinished / f"{own}.html", page)
            entries.append(index_entry(f"{own}.html", reading))
            redactions.append(redaction)
        index = index_page(entries)
        for redaction in redactions:
            proved(index, redaction)
        write_whole(unfinished / "index.html", index)


def passed_on(found: _T, plans: "Iterable[Plan]", *, redact: bool) -> "tuple[_T, Redaction | None]":
    """Return what was read of these plans, redacted if that is asked for, and what was taken out of it."""
    from prony.report.publication import redaction_for

    redaction = redaction_for(plans, socket.gethostname()) if redact else None
    return (redaction(found) if redaction else found), redaction


def proved(text: str, redaction: "Redaction | None") -> str:
    """Return a finished text that has nothing of what was taken out of it, nor have the charts that it holds;
    without a redaction, any text.

    *Errors*: HostError for one that has.
    """
    from prony.report.page.markup import unpacked

    left = redaction and redaction.left_in(unpacked(text))
    if left:
        raise HostError(f"`--redact` left `{left}` in what was to be written: nothing is written")
    return text


def _archives(place: Path) -> list[Path]:
    found = archives_below(place)
    if not found:
        raise UsageError(f"`{place}` has no archives; expected files named *.prony")
    return found


def names_of(files: Sequence[Path], *, redact: bool = False) -> list[str]:
    """Return a name for each archive: its own, with a number where several have it; ``redact``: none of its
    owner's.

    >>> names_of([Path("a/x.prony"), Path("b/x.prony"), Path("index.prony")])
    ['x', 'x-2', 'index-2']
    """
    if redact:
        return [f"study-{number}" for number in range(1, len(files) + 1)]
    taken = {"index"}
    names = []
    for file in files:
        name, number = file.stem, 1
        while name in taken:
            number += 1
            name = f"{file.stem}-{number}"
        taken.add(name)
        names.append(name)
    return names


def _read(file: Path, *, redact: bool, force: bool) -> "tuple[tuple[StudyResults, Traces], Redaction | None]":
    """Return what an archive says, as it may be passed on where that is asked for, and what was taken out."""
    from prony.archive import open_archive
    from prony.reading.study import read_archive
    from prony.reading.traces import primary_cells, traces

    with open_archive(file) as archive:
        reading = read_archive(archive, takes_unsteady=force)
        found = traces(reading, archive.trials(), primary_cells(reading.groups))
    return passed_on((reading, found), [reading.plan], redact=redact)

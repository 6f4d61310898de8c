"""Evidence of planted faults in files: lines of JSON, compressed, a file for each session, in one folder.

A session adds each plant as it is measured, so that what a killed one has measured stays; a later one, also
on another machine, leaves out what is known. The first line says what session it was.

>>> name_of(SessionFacts(0, "1", "abcdef012345"))
'1970-01-01T000000-abcdef.jsonl.xz'
"""

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from lab.kept import Kept, decode_kept, encode_kept
from lab.sessions import Session, SessionFacts
from prony.core.atomic_files import write_whole_bytes
from prony.core.errors import UsageError
from prony.model.json_codec import decode, encode

SUFFIX = ".jsonl.xz"
_SESSION = "session"


def name_of(facts: SessionFacts) -> str:
    """Return the name of a session's file: names in order are sessions in order."""
    began = datetime.fromtimestamp(facts.began_unix_s, UTC)
    return f"{began:%Y-%m-%dT%H%M%S}-{facts.machine_key[:6]}{SUFFIX}"


def sessions_in(folder: Path) -> tuple[Session, ...]:
    """Return the sessions of a folder, the first first.

    *Errors*: UsageError for a file that holds something else.
    """
    return tuple(read_file(file) for file in sorted(folder.glob(f"*{SUFFIX}")))


def read_file(file: Path) -> Session:
    """Return the session of one file.

    *Errors*: UsageError for a file that holds something else.
    """
    facts: SessionFacts | None = None
    trials: list[Kept] = []
    try:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                found = json.loads(line)
                if isinstance(found, dict) and _SESSION in found:
                    facts = decode(SessionFacts, found[_SESSION], _SESSION)
                else:
                    trials.append(decode_kept(found))
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise UsageError(f"`{file}` holds no evidence of planted faults: {error}") from error
    return Session(facts, tuple(trials))


def write_session(file: Path, trials: Iterable[Kept], facts: SessionFacts | None = None) -> None:
    """Write a session whole; the same trials give the same bytes.

    *Errors*: OSError.
    """
    write_whole_bytes(file, lzma.compress("".join(_lines(trials, facts)).encode(), preset=9))


class SessionFile:
    """The file of the session that runs now, in ``folder``: made with its first plant."""

    def __init__(self, folder: Path, facts: SessionFacts) -> None:
        self._path, self._facts = folder / name_of(facts), facts
        self._begun = False

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._path

    def add(self, trials: Sequence[Kept]) -> None:
        """Add the trials of one plant: a stream of its own, which ends before the next plant begins.

        *Errors*: OSError.
        """
        text = "".join(_lines(trials, None if self._begun else self._facts))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(lzma.compress(text.encode()))
        self._begun = True

    def close(self) -> None:
        """Compress it as a whole: a quarter of its streams together.

        *Errors*: OSError, UsageError.
        """
        if self._begun:
            session = read_file(self._path)
            write_session(self._path, session.trials, session.facts)


def _lines(trials: Iterable[Kept], facts: SessionFacts | None) -> Iterator[str]:
    if facts is not None:
        yield _line({_SESSION: encode(facts)})
    for one in trials:
        yield _line(encode_kept(one))


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n"

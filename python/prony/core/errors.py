"""The exception tree and the exit codes.

::

    PronyError                 4   a fault in Prony itself
    ├── UsageError             2   the command line or a plan asks for something impossible
    ├── HostError              3   this machine lacks what the measurement needs
    ├── SubjectError           3   a server could not be installed, started or verified
    ├── EngineError            3   the load engine could not run
    └── ArchiveError           3   a file is not an archive, or not one that this version reads

A message says what failed, on which value, where, and what was expected; ``hint`` is the next command to
type.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum, StrEnum


class ExitCode(IntEnum):
    """What a command's exit status means. Public: scripts depend on it."""

    DONE = 0
    VERDICT_NEGATIVE = 1
    USAGE = 2
    COULD_NOT_MEASURE = 3
    INTERNAL = 4
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class PronyError(Exception):
    """A failure with a message for the user and, where there is one, the next step.

    ``hint`` is a whole sentence or a command; it is printed after a blank line.
    """

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PronyError):
    """The command line or a plan asks for something impossible."""

    exit_code = ExitCode.USAGE


class HostError(PronyError):
    """This machine lacks what the measurement needs."""

    exit_code = ExitCode.COULD_NOT_MEASURE


OUT_OF_MEMORY = "out of memory: the kernel killed "
"""How the reason begins of a subject that the kernel killed for its memory; how many processes follows."""


class FailureStage(StrEnum):
    """What a subject was about when it failed."""

    INSTALL = "install"
    START = "start"
    CONTRACT = "contract"
    LOAD = "load"
    STOP = "stop"


class SubjectError(PronyError):
    """A server could not be installed or started, or it broke its contract.

    ``log`` holds the last lines that the server wrote.
    """

    exit_code = ExitCode.COULD_NOT_MEASURE

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        stage: FailureStage = FailureStage.START,
        log: str = "",
    ) -> None:
        super().__init__(message, hint)
        self.stage = stage
        self.log = log


class EngineError(PronyError):
    """The load engine refused its specification or could not run."""

    exit_code = ExitCode.COULD_NOT_MEASURE


class ArchiveError(PronyError):
    """A file is not an archive, or is damaged."""

    exit_code = ExitCode.COULD_NOT_MEASURE


@contextmanager
def explained(what: str, hint: str | None = None) -> Iterator[None]:
    """Turn an OSError within the block, or the function that this decorates, into a HostError.

    >>> try:
    ...     with explained("cannot read the figures"):
    ...         raise FileNotFoundError(2, "No such file or directory", "/a/b")
    ... except HostError as error:
    ...     print(error.message)
    cannot read the figures: `/a/b`: No such file or directory
    """
    try:
        yield
    except OSError as error:
        raise HostError(f"{what}: {refused_by(error)}", hint) from error


def refused_by(error: OSError) -> str:
    """Return why the system refused a call, with the file that it was about."""
    why = error.strerror or str(error)
    return f"`{error.filename}`: {why}" if error.filename else why

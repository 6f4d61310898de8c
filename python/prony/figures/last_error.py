"""The error that a program's log ends with: its type, its message, and the lines that show its place.

Python, Perl, Node and Ruby write errors in four ways; each is recognised by its shape, not by names of
exceptions, plain or in colour. What a stopping server writes after the error is left out. Pure.

>>> log = '''Traceback (most recent call last):
...   File "/srv/shop/shop.py", line 3, in <module>
...     import stripe
... ModuleNotFoundError: No module named 'stripe'
... [8612] [ERROR] Reason: Worker failed to boot.
... '''
>>> error = last_error(log)
>>> error.kind, error.message
('ModuleNotFoundError', "No module named 'stripe'")
>>> error.lines[-1]
"ModuleNotFoundError: No module named 'stripe'"
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

# Enough to show the place in the app, and a message of several lines.
_LINES_BEFORE, _LINES_AFTER = 6, 6
# ECMA-48, section 5.4: a control sequence, colours among them.
_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# Ways to end that follow from another error, or from a signal.
_CONSEQUENCES = {"SystemExit", "KeyboardInterrupt", "CancelledError", "HaltServer"}

_PYTHON_HEAD = re.compile(r'Traceback \(most recent call last\)|^\s+File ".*", line \d+')
# A frame is indented; rich draws a box around its frames.
_PYTHON_FRAME = re.compile(r"[\s╭│╰]")
_PYTHON_ERROR = re.compile(r"(?P<kind>[^\W\d][\w.]*)(?::(?: (?P<message>.*))?)?")
# An exception group draws a line before its exceptions.
_GROUP_MARGIN = re.compile(r"^ +[|+] ?")
_WAITRESS = re.compile(r"There was an exception \((?P<kind>\w+)\) importing your module\.")

_NODE_FRAME = re.compile(r"\s+at \S")
_NODE_ERROR = re.compile(
    r"(?:Uncaught |\s+\[cause\]: )?(?P<kind>[^\W\d][\w$.]*(?: \[\w+\])?)(?:: (?P<message>.*)|(?<=Error))"
)
# Between the error's line and its first frame: the modules that required the missing one.
_NODE_LINES = 10

_PERL_ERROR = re.compile(
    r"(?:Error while loading \S+: )?(?P<message>\S.*?) at (?:\S+|\(eval \d+\)) line \d+"
    r"(?:, <.*?> (?:line|chunk) \d+)?\.?"
)
# perldiag: the commonest warnings, which look like errors; and what follows from an error before it.
_PERL_OTHER = re.compile(
    r"Use of uninitialized value|Deep recursion|Subroutine \S+ redefined|Name \S+ used only once"
    r"|Odd number of elements|Argument .* isn't numeric|.*masks earlier declaration"
    r"|BEGIN failed--compilation aborted|Compilation failed in require|.* called at "
)

_RUBY_ERROR = re.compile(r"\S+:\d+:in [`'].+?': (?P<message>.*) \((?P<kind>[A-Z][\w:]*)\)")

# No traceback, but a line that names its error: `MemoryError: out of memory`.
_NAMED_ERROR = re.compile(
    r"(?P<kind>(?:[^\W\d]\w*\.)*\w*(?:Error|Exception|Exit|Interrupt))(?:: ?(?P<message>.*))?"
)
# The beginning of a logger's line: it is no part of a message before it.
_LOGGED = re.compile(r"\[|\d{4}[-/]|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b|\*\*\*")


@dataclass(frozen=True, slots=True)
class LastError:
    """``kind``: the type, with its module where the program says it; empty in Perl, whose errors have none.

    ``lines``: a few before the error's line, which show where it happened, the line itself, and more of it.
    """

    kind: str
    message: str
    lines: tuple[str, ...]

    @property
    def name(self) -> str:
        """The type without its module: ``ImproperlyConfigured``."""
        return self.kind.rpartition(".")[2]

    @property
    def line(self) -> str:
        """Type and message in one line."""
        return f"{self.kind}: {self.message}" if self.kind and self.message else self.kind or self.message


@dataclass(frozen=True, slots=True)
class _Found:
    """An error at line ``at`` of a log; its trace begins at ``first`` and ends before ``end``."""

    at: int
    first: int
    end: int
    kind: str
    message: str


def plain_lines(log: str) -> list[str]:
    """Return the lines of a log that are not empty, without colours.

    >>> plain_lines("\\x1b[31mMemoryError\\x1b[0m: none left  \\n\\n")
    ['MemoryError: none left']
    """
    plain = _CONTROL_SEQUENCE.sub("", log)
    return [line.rstrip() for line in plain.splitlines() if line.strip()]


def last_error(log: str) -> LastError | None:
    """Return the last error in a log that is not the consequence of another; None when there is none."""
    lines = plain_lines(log)
    found = [one for find in (_of_python, _of_node, _of_perl, _of_ruby, _of_waitress) for one in find(lines)]
    found = found or list(_named(lines))
    causes = [one for one in found if one.kind.rpartition(".")[2] not in _CONSEQUENCES]
    last = max(causes or found, key=lambda one: one.at, default=None)
    if last is None:
        return None
    first = max(last.first, last.at - _LINES_BEFORE)
    shown = lines[first : min(last.end, last.at + 1 + _LINES_AFTER)]
    return LastError(last.kind, last.message, tuple(shown))


# --- Python -----------------------------------------------------------------------------------------------


def _of_python(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield the end of each traceback: the first line after its frames."""
    inner = [_GROUP_MARGIN.sub("", line) for line in lines]
    first: int | None = None
    for number, line in enumerate(inner):
        if _PYTHON_HEAD.search(line):
            first = number if first is None else first
        elif first is not None and not _PYTHON_FRAME.match(line):
            match = _PYTHON_ERROR.fullmatch(line)
            if match:
                message = match["message"] or ""
                end = _end_of_message(inner, number, message)
                yield _Found(number, first, end, match["kind"], message)
            first = None


def _end_of_message(lines: Sequence[str], at: int, message: str) -> int:
    """Return the line after a message: its further lines are indented, or each begins an indented part."""
    end = at + 1
    for number in range(at + 1, len(lines)):
        if lines[number] == message or _LOGGED.match(lines[number]) or _PYTHON_HEAD.search(lines[number]):
            break
        if lines[number].startswith(" "):
            end = number + 1
        elif number > end:
            break
    return end


def _of_waitress(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield waitress's form of a traceback: the type, and the arguments in lines of their own."""
    for number, line in enumerate(lines):
        match = _WAITRESS.fullmatch(line)
        if match:
            said = next((one for one in lines[number + 1 : number + 3] if one.startswith("1. ")), "")
            yield _Found(number, number, number + 3, match["kind"], said.removeprefix("1. "))


# --- Node -------------------------------------------------------------------------------------------------


def _of_node(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield the message before the frames of each stack, with the line of source that Node shows first."""
    for number, line in enumerate(lines):
        if not _NODE_FRAME.match(line) or (number and _NODE_FRAME.match(lines[number - 1])):
            continue
        at = _above(lines, number, _NODE_ERROR.fullmatch)
        match = None if at is None else _NODE_ERROR.fullmatch(lines[at])
        if at is not None and match:
            excerpt = next((one for one in (at - 3,) if one >= 0 and re.search(r":\d+$", lines[one])), at)
            yield _Found(at, excerpt, len(lines), match["kind"], match["message"] or "")


def _above(lines: Sequence[str], number: int, fits: Callable[[str], object]) -> int | None:
    """Return the nearest matching line above ``number``, if no frame is between."""
    for above in range(number - 1, max(-1, number - 1 - _NODE_LINES), -1):
        if _NODE_FRAME.match(lines[above]):
            return None
        if fits(lines[above]):
            return above
    return None


# --- Ruby -------------------------------------------------------------------------------------------------


def _of_ruby(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield each exception: place, message and type in one line, before the frames."""
    for number, line in enumerate(lines):
        if match := _RUBY_ERROR.fullmatch(line):
            yield _Found(number, number, number + 3, match["kind"], match["message"])


# --- Perl -------------------------------------------------------------------------------------------------


def _of_perl(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield the messages of `die` and its relatives, with the calls that led there."""
    for number, line in enumerate(lines):
        match = _PERL_ERROR.fullmatch(line)
        if match and not _PERL_OTHER.match(line):
            end = number + 1
            while end < len(lines) and (lines[end].startswith("\t") or _PERL_OTHER.match(lines[end])):
                end += 1
            yield _Found(number, number, end, "", match["message"])


def _named(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield the lines that name an error without a traceback."""
    for number, line in enumerate(lines):
        match = _NAMED_ERROR.fullmatch(line)
        if match:
            yield _Found(number, 0, number + 1, match["kind"], match["message"] or "")

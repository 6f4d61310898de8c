"""What was read, as it may be passed on: every text in it without paths, users and the machine's name.

Which other programs ran is left out. Values are redacted, before any form is made of them: so no form can
forget one, and no style is broken by a name that is also a word of a page. What was taken out is remembered,
and a finished file can be proved to have none of it. Pure.

System paths stay: they show what to change, and are the same on every machine. An archive does not hold the
name of its machine, so the name is that of the machine which makes the report.

>>> redaction = Redaction("bench-7", kept=frozenset({"/api/items"}))
>>> redaction(("as /home/me/shop on bench-7", "/api/items", 3))
('as …/shop on HOST', '/api/items', 3)
>>> redaction("File /home/me/shop/env/lib/app.py, line 3; see /proc/sys/net/core/somaxconn")
'File …/app.py, line 3; see /proc/sys/net/core/somaxconn'
>>> redaction.left_in("<p>/home/me/shop</p>"), redaction.left_in("<p>shop</p>")
('/home/me/shop', None)
"""

import re
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import TypeVar, cast

from prony.model.facts import OtherProgram
from prony.model.plan import Plan
from prony.model.workload import Workload

_T = TypeVar("_T")
# Places in the report's JSON, which look like paths.
_OWN = frozenset({"pointer"})
# A name of a machine that is a plain word, such as `server`, stands in a page for something else, too.
_A_WORD = re.compile(r"[a-zA-Z]*")
_PART = r"[\w.@+~-]+"
# Folders in which people keep what is theirs: what lies in one is a path however short it is.
_ROOTS = "home|Users|root|srv|opt|mnt|media|data|var|tmp|private|Volumes|export|workspace|work|builds?"
# Slashes may be several, or escaped, as in JSON of PHP; folders have any letters, where another one follows.
_SLASH = r"(?:\\{0,3}/)+"
_FOLDER = r"""(?:[^\s/\\`'"<>|:;,]|\\[ ])+"""
# Elsewhere from two folders on: what requests ask for is known. Two slashes begin an address or a path, three
# behind a colon a path; an option of one letter, such as `-L`, may have its value at once, and a relative
# path leads there, too.
_PATH = re.compile(
    rf"""file://(?:/+[\w.@+~%-]+)+/?
    | (?<=[`'"])/(?:{_ROOTS})/[^`'"\n]*(?=[`'"])
    | (?:(?<![\w./…~-])|(?<=(?<![\w-])-[A-Za-z])|(?<=(?<![\w:/])/)|(?<=(?<![\w/])\.\.)|(?<=://)|(?<=:///))
      (?:~[\w-]*(?:/{_PART})+ | {_SLASH}(?:{_ROOTS})(?:{_SLASH}(?:{_FOLDER}(?={_SLASH})|{_PART}))+
       | /{_PART}(?:/+{_PART})+)/?
    | %2[Ff](?:{_ROOTS})(?:%2[Ff]{_PART})+""",
    re.VERBOSE,
)
_SLASHES = re.compile(rf"{_SLASH}|%2[Ff]")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/bin/", "/lib/", "/sbin/")
_OWNED = re.compile(rf"/(?:home|Users)(?:/{_PART})?|/(?:{_ROOTS})(?:/{_PART})?$|~[\w-]*")


@dataclass(frozen=True, slots=True)
class Redaction:
    """Takes out what locates or names. ``host``: the machine's name; ``kept``: paths that are no files but
    what requests ask for; ``names``: of subjects, each with the name in its place.
    """

    host: str
    kept: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)
    _removed: set[str] = field(default_factory=set)

    def __call__(self, value: _T) -> _T:
        """Return a value with all texts in it redacted, at any depth."""
        return cast("_T", self._changed(value))

    def left_in(self, finished: str) -> str | None:
        """Return what a finished text has of all that was taken out; None: nothing."""
        return next((one for one in sorted(self._removed) if _stands_in(one, finished)), None)

    def _changed(self, value: object) -> object:
        # Not the words of enumerations, which are texts too.
        if type(value) is str:
            return self.names.get(value) or self._text(value)
        if isinstance(value, tuple | list | set | frozenset):
            return self._several(value)
        if isinstance(value, Mapping):
            return {self._changed(key): self._changed(one) for key, one in value.items()}
        return self._record(value) if is_dataclass(value) and not isinstance(value, Enum | type) else value

    def _several(self, values: Collection[object]) -> object:
        # What else somebody runs is nobody's business.
        changed = [self._changed(one) for one in values if not isinstance(one, OtherProgram)]
        # A named tuple takes its values one by one.
        return type(values)(*changed) if hasattr(values, "_fields") else type(values)(changed)  # type: ignore[call-arg]

    def _record(self, value: object) -> object:
        # Not by its constructor: what is checked there was true of the value before.
        new = object.__new__(type(value))
        for one in fields(value):  # type: ignore[arg-type]
            before = getattr(value, one.name)
            object.__setattr__(new, one.name, before if one.name in _OWN else self._changed(before))
        return new

    def _text(self, text: str) -> str:
        if text in self.kept:
            return text
        self._removed.update(path for path in _paths_in(text) if path not in self.kept)
        self._removed.update(name for name in _names_in(text, self.host) if not _A_WORD.fullmatch(name))
        return _without_traces(text, self.host, self.kept)


def redaction_for(plans: Iterable[Plan], host: str) -> Redaction:
    """Return the redaction of what was read of these plans. ``host``: the machine's name."""
    found = tuple(plans)
    bare = redaction_of_loads((cell.workload for plan in found for cell in plan.cells), host)
    names: dict[str, str] = {}
    for name in {subject.name: None for plan in found for subject in plan.subjects()}:
        new = bare(name)
        while new in names.values():
            new += "'"
        names[name] = new
    return Redaction(host, bare.kept, names, bare._removed)


def redaction_of_loads(workloads: Iterable[Workload], host: str) -> Redaction:
    """Return the redaction of what was read of these loads: it keeps the paths that they ask for."""
    requests = [request for one in workloads for request in one.requests]
    kept = {part for request in requests for part in (request.path, request.path.partition("?")[0])}
    return Redaction(host, frozenset(path for path in kept if not _OWNED.match(path)))


def _stands_in(removed: str, finished: str) -> bool:
    return removed in finished and bool(re.search(rf"(?<![\w.-]){re.escape(removed)}(?![\w-])", finished))


def _paths_in(text: str) -> list[str]:
    found = [match.group(0).removeprefix("file://") for match in _PATH.finditer(text)]
    return [path for path in found if not path.startswith(_SYSTEM)]


def _without_traces(text: str, host: str, requests: Set[str]) -> str:
    """Return text with each path shortened to its last part, but for ``requests``, and without the machine's
    name and domain; an empty ``host`` is not looked for. Of somebody's own folder nothing is left.
    """
    kept = _PATH.sub(lambda match: match[0] if match[0] in requests else _shortened(match), text)
    return re.sub(_of_machine(host), "HOST", kept) if _names(host) else kept


def _names(host: str) -> bool:
    return host.partition(".")[0] not in ("", "localhost")


def _of_machine(host: str) -> str:
    """Return a pattern of a machine's name with any domain; one that is a plain word as it is written."""
    short = re.escape(host.partition(".")[0])
    name = f"(?:{re.escape(host)}|{short})" if _A_WORD.fullmatch(short) else rf"(?i:{short})(?:\.[\w-]+)*"
    return rf"(?<![\w.-]){name}(?![\w-])"


def _names_in(text: str, host: str) -> list[str]:
    return re.findall(_of_machine(host), text) if _names(host) else []


def _shortened(match: re.Match[str]) -> str:
    path = _SLASHES.sub("/", match.group(0).removeprefix("file://")).rstrip("/")
    if path.startswith(_SYSTEM):
        return match.group(0)
    below = _OWNED.sub("", path, count=1) if _OWNED.match(path) else path
    return "…/" + below.rpartition("/")[2] if below else "…"

"""The settings of a subject that change a resource, by their own names, as its catalogue entry declares them.

An archive keeps the entry by which a subject was measured; what it says is taken as far as it has the right
shape.

>>> facts = {"concurrency": {"processes": "{workers}", "slots": "{workers}*{threads}"}}
>>> entry = {"server": {"name": "gunicorn", "facts": facts}, "settings": {"workers": 1, "threads": 4}}
>>> knob_of(SubjectFacts(entry=entry), Turned.THREADS)
Knob(entry='gunicorn', setting='threads', value=4)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from prony.model.facts import SubjectFacts
from prony.model.shown import INTERNAL, shown

_SETTING = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class Owner(StrEnum):
    """Which part of a subject has a setting."""

    SERVER = "server"
    FRONTEND = "frontend"


class Turned(StrEnum):
    """What a knob changes."""

    PROCESSES = "processes"
    THREADS = "threads"
    BACKLOG = "backlog"
    CONNECTIONS = "connections"
    KEEP_ALIVE = "keep-alive"
    LIFE = "a worker's life"
    NO_DELAY = "delays of packets"
    OWN_SOCKETS = "a socket for each worker"
    LOG = "log"
    UPSTREAM = "a frontend's connections to the server"


# What no fact of an entry declares: how settings of the catalogue are called, and whether only one that is in
# force, and not zero or off, can be the reason.
_CALLED: Mapping[Turned, tuple[re.Pattern[str], bool]] = MappingProxyType(
    {
        Turned.CONNECTIONS: (re.compile(r"\w*connection\w*"), True),
        Turned.LIFE: (re.compile(r"max_req\w*|timeout"), True),
        Turned.NO_DELAY: (re.compile(r"no_?delay"), False),
        Turned.OWN_SOCKETS: (re.compile(r"reuse_port"), False),
        Turned.LOG: (re.compile(r"\w+_log"), True),
        Turned.UPSTREAM: (re.compile(r"upstream_keep_?alive"), False),
    }
)


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting of an entry of the catalogue, and its value now; null: not known."""

    entry: str = field(metadata=INTERNAL)
    setting: str = field(metadata=INTERNAL)
    value: int | str | None

    @shown
    def name(self) -> str:
        """What `--set` calls it."""
        return f"{self.entry}.{self.setting}"


def declared_entry(facts: SubjectFacts, part: str) -> Mapping[str, object]:
    """Return what the catalogue said of a subject's ``server`` or ``frontend``; empty where not recorded."""
    return _object(facts.entry or {}, part)


def knob_of(facts: SubjectFacts, turned: Turned, owner: Owner = Owner.SERVER) -> Knob | None:
    """Return the setting of its owner that changes something; None where its entry has none.

    Threads are what multiplies slots beside processes; a server whose slots are its processes has none.
    """
    entry = declared_entry(facts, owner)
    declared = _object(entry, "facts")
    concurrency = _object(declared, "concurrency")
    processes = _settings(concurrency.get("processes"))
    values = _object(facts.entry or {}, "frontend_settings" if owner is Owner.FRONTEND else "settings")
    match turned:
        case Turned.PROCESSES:
            names = processes
        case Turned.THREADS:
            names = [name for name in _settings(concurrency.get("slots")) if name not in processes]
        case Turned.BACKLOG:
            names = _settings(_object(declared, "backlog").get("value"))
        case Turned.KEEP_ALIVE:
            names = _of_keep_alive(declared.get("keep_alive"), values)
        case _:
            names = _called(turned, values)
    if not names:
        return None
    value = values.get(names[0])
    return Knob(str(entry.get("name", owner)), names[0], value if isinstance(value, int | str) else None)


def _called(turned: Turned, values: Mapping[str, object]) -> list[str]:
    """Return the settings with such names; of limits only those that are in force."""
    pattern, in_force = _CALLED[turned]
    return sorted(
        name for name, value in values.items() if pattern.fullmatch(name) and (value or not in_force)
    )


def _of_keep_alive(facts: object, values: Mapping[str, object]) -> list[str]:
    """Return the settings that turn keep-alive off as they are, then those that would turn it on."""
    known = [one for one in facts if isinstance(one, Mapping)] if isinstance(facts, list) else []
    conditions = [(bool(one.get("on")), _object(one, "when")) for one in known]
    off = [when for on, when in conditions if not on and "is" in when and _value(when, values) == when["is"]]
    return [str(when["if"]) for when in (*off, *(when for on, when in conditions if on)) if "if" in when]


def _value(when: Mapping[str, object], values: Mapping[str, object]) -> object:
    return values.get(str(when.get("if")))


def _object(found: Mapping[str, object], name: str) -> Mapping[str, object]:
    inner = found.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _settings(expression: object) -> list[str]:
    """Return the settings that an expression names, without the number of CPUs."""
    names = _SETTING.findall(expression) if isinstance(expression, str) else []
    return [name for name in names if name != "cpus"]

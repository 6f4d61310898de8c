"""What the options of builds say: what one command of a build may use, and whether it is trusted.

>>> rules_of("memory=2G,time=1h,host=github.com", trusted=False).hosts
('github.com',)
"""

from prony.cli.options import memory_of
from prony.errors import UsageError
from prony.runas import BuildRules
from prony.units import parse_bytes, parse_count, parse_duration

_NAMES = ("memory", "processes", "disk", "time", "host")
_HINT = "for example --build-limits memory=4G,time=1h,host=github.com"


def rules_of(text: str | None, *, trusted: bool) -> BuildRules:
    """Return the rules that ``--build-limits`` and ``--trust-build`` give.

    *Errors*: UsageError for a limit that is none.
    """
    given: dict[str, list[str]] = {name: [] for name in _NAMES}
    for part in text.split(",") if text is not None else ():
        name, _, value = part.strip().partition("=")
        if name not in given or not value or (given[name] and name != "host"):
            raise UsageError(f"`--build-limits {text}`: `{part}` is none; expected {_expected()}", hint=_HINT)
        given[name].append(value)
    try:
        return _rules(given, trusted=trusted)
    except ValueError as error:
        raise UsageError(f"`--build-limits {text}`: {error}", hint=_HINT) from None


def _rules(given: dict[str, list[str]], *, trusted: bool) -> BuildRules:
    one = {name: values[0] for name, values in given.items() if values}
    return BuildRules(
        memory_bytes=memory_of("--build-limits memory", one["memory"]) if "memory" in one else None,
        processes=parse_count(one["processes"]) if "processes" in one else None,
        disk_bytes=parse_bytes(one["disk"]) if "disk" in one else None,
        time_ns=parse_duration(one["time"]) if "time" in one else None,
        hosts=tuple(given["host"]),
        trusted=trusted,
    )


def _expected() -> str:
    return ", ".join(f"`{name}=...`" for name in _NAMES)

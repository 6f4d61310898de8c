"""How the kernel's files become counters: which field of which file, in which unit.

Must not know what the counters are used for.

>>> parse_flat("nr_periods 3\\nnr_throttled 1\\n")["nr_throttled"]
1
>>> parse_flat("some avg10=0.00 total=17\\n")["some.total"]
17
>>> parse_flat("42\\n")
{'': 42}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prony.sandbox.cgroup.base import Counters, CountersReading
from prony.sandbox.cgroup.files import CgroupFiles


@dataclass(frozen=True, slots=True)
class Source:
    """One file: the counter of each of its keys (the empty key: the whole file), and a factor."""

    controller: str
    file: str
    fields: Mapping[str, tuple[str, int]]


def parse_flat(text: str) -> dict[str, int]:
    """Return the numbers of a file of one number, of pairs, or of ``some total=1`` (PSI), by key."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        pairs = [word.partition("=") for word in words if "=" in word]
        if pairs:
            found.update((f"{words[0]}.{key}", int(value)) for key, _, value in pairs if value.isdigit())
        elif words and words[-1].isdigit():
            found["" if len(words) == 1 else words[0]] = int(words[-1])
    return found


def read_sources(
    files: CgroupFiles, sources: tuple[Source, ...], folder_of: Callable[[str], Path | None]
) -> CountersReading:
    """Return the counters in a group's files; ``folder_of`` returns null for a missing controller."""
    values: dict[str, int] = {}
    missing: dict[str, str] = {}
    for source in sources:
        folder = folder_of(source.controller)
        if folder is None:
            missing.update(dict.fromkeys(source.fields, f"no controller `{source.controller}`"))
            continue
        try:
            found = parse_flat(files.read(folder / source.file))
        except OSError as error:
            missing.update(dict.fromkeys(source.fields, f"cannot read `{source.file}`: {error.strerror}"))
            continue
        for name, (key, factor) in source.fields.items():
            if key in found:
                values[name] = found[key] * factor
            else:
                missing[name] = f"this kernel's `{source.file}` has no `{key}`"
    return CountersReading(values, missing)


def merge(readings: list[CountersReading]) -> Counters:
    """Return the counters of several back ends; the first one wins, because v2 is more precise."""
    values: dict[str, int] = {}
    for reading in reversed(readings):
        values.update(reading.values)
    missing = {
        name: "; ".join(dict.fromkeys(one.missing[name] for one in readings if name in one.missing))
        for name in Counters.names()
        if name not in values
    }
    return Counters(**values, missing=missing)

"""The memory of the machine. Must not know who uses it.

Gauges: ``memory_bytes``, all of it; ``memory_available_bytes``, what programs could get without swapping.

*Source*: proc_meminfo(5): MemTotal, MemAvailable.

>>> sorted(MemoryGauge().read())
['memory_available_bytes', 'memory_bytes']
"""

from pathlib import Path

from prony.host.facts.memory import parse_meminfo

_FIELDS = {"memory_bytes": "MemTotal", "memory_available_bytes": "MemAvailable"}


class MemoryGauge:
    """Reads the machine's memory; after a failure it does not try again."""

    def __init__(self, file: Path = Path("/proc/meminfo")) -> None:
        self._file = file
        self._reason: str | None = None

    def read(self) -> dict[str, int]:
        """Return the gauges."""
        if self._reason is not None:
            return {}
        try:
            sizes = parse_meminfo(self._file.read_text())
            return {name: sizes[field] for name, field in _FIELDS.items()}
        except OSError as error:
            self._reason = f"cannot read `{self._file}`: {error.strerror}"
        except KeyError as error:
            self._reason = f"`{self._file}` does not say {error.args[0]}"
        return {}

    def read_at_open(self) -> dict[str, int]:
        """Return nothing more."""
        return {}

    def read_at_close(self) -> dict[str, int]:
        """Return nothing more."""
        return {}

    def close(self) -> None:
        """Do nothing."""

    def missing(self) -> dict[str, str]:
        """Return why it could not be read."""
        return {} if self._reason is None else dict.fromkeys(_FIELDS, self._reason)

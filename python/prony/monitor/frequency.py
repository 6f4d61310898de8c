"""The frequency of the server's CPUs.

Must not know what runs on them. One gauge, ``frequency_khz``: the mean over the server's CPUs.

*Source*: kernel, Documentation/admin-guide/pm/cpufreq.rst, scaling_cur_freq.

>>> FrequencyGauge(()).read()
{}
"""

from collections.abc import Sequence
from pathlib import Path

_CPUS = Path("/sys/devices/system/cpu")


class FrequencyGauge:
    """Reads the frequency of ``cpus``; after a failure it does not try again."""

    def __init__(self, cpus: Sequence[int], folder: Path = _CPUS) -> None:
        self._files = tuple(folder / f"cpu{number}/cpufreq/scaling_cur_freq" for number in cpus)
        self._reason: str | None = None

    def read(self) -> dict[str, int]:
        """Return the gauge."""
        if self._reason is not None or not self._files:
            return {}
        try:
            each = [int(file.read_text()) for file in self._files]
        except OSError as error:
            self._reason = f"cannot read `{error.filename or self._files[0]}`: {error.strerror}"
            return {}
        except ValueError:
            self._reason = f"`{self._files[0]}` does not say"
            return {}
        return {"frequency_khz": sum(each) // len(each)}

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
        return {} if self._reason is None else {"frequency_khz": self._reason}

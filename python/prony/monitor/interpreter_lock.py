"""Whether CPython's lock is held, from the opening of the window to its close: by py-spy, if that is there.

It stops the process for each sample: this belongs into a trial of its own. Must not know figures. Counters,
over at most four processes: ``gil.looks``, and of these ``gil.held``: some thread had the lock.

*Source*: py-spy's manual, `record --gil --format raw`: a line for each stack, with the number of its samples.

>>> samples_in("<module> (app.py:1);work (app.py:9) 41\\nmain (b.py:3) 1\\n\\n")
42
"""

from prony.monitor.stacks import RATE_HZ, PythonStacks


def samples_in(text: str) -> int:
    """Return how many samples stacks have together.

    *Errors*: ValueError for another text.
    """
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if line.strip())


class LockCounters:
    """Counts by ``stacks``, which are of threads that hold the lock (``--gil``)."""

    def __init__(self, stacks: PythonStacks) -> None:
        self._stacks = stacks

    def open_window(self) -> None:
        """Begin to sample."""
        self._stacks.open_window()

    def close_window(self) -> None:
        """Stop sampling."""
        self._stacks.close_window()

    def close(self) -> None:
        """Stop sampling, also in a window that was never closed."""
        self._stacks.close_window()

    def deltas(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the counters, or why the lock could not be sampled."""
        looks = round(self._stacks.looked_s * RATE_HZ)
        if not looks:
            return {}, {"gil.looks": self._stacks.reason}
        try:
            held = sum(map(samples_in, self._stacks.texts().values()))
        except ValueError as error:
            return {}, {"gil.looks": f"py-spy wrote something else than stacks: {error}"}
        return {"gil.looks": looks, "gil.held": min(held, looks)}, {}

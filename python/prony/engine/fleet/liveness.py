"""Which generators are lost: those that were silent for too long, while this side was awake to hear them.

Pure: it is given the time.

>>> watch = Liveness(["a", "b"], now_ns=0, silence_ns=1000)
>>> watch.look(600)
()
>>> watch.beat("a")
>>> watch.look(1200), watch.look(1400)
(('b',), ())
"""

from collections.abc import Iterable

from prony.units import MILLISECOND_NS

BEAT_EVERY_S = 0.2
SILENCE_NS = 1200 * MILLISECOND_NS
"""Six beats: a loss is noticed in less than 1.5 s, and a machine that is saturated has time to beat."""

# Between two looks. What lies beyond that, this side was stopped or starved itself, and heard nobody.
_LONGEST_STEP_NS = 300 * MILLISECOND_NS


class Liveness:
    """Looks for the silent; ``beat`` may be called from any thread.

    ``grace_ns``: so much more time there is for the first beat.
    """

    def __init__(
        self, names: Iterable[str], now_ns: int, silence_ns: int = SILENCE_NS, grace_ns: int = 0
    ) -> None:
        self._silence_ns = silence_ns
        self._last_look_ns = now_ns
        self._awake_ns = 0
        self._heard_ns = dict.fromkeys(names, grace_ns)

    def beat(self, name: str, grace_ns: int = 0) -> None:
        """Note a sign of life; until the next one there may be so much more silence."""
        if name in self._heard_ns:
            self._heard_ns[name] = self._awake_ns + grace_ns

    def ended(self, name: str) -> None:
        """Expect no more of this one."""
        self._heard_ns.pop(name, None)

    def look(self, now_ns: int) -> tuple[str, ...]:
        """Return who is newly lost."""
        self._awake_ns += min(now_ns - self._last_look_ns, _LONGEST_STEP_NS)
        self._last_look_ns = now_ns
        lost = tuple(
            name for name, heard_ns in self._heard_ns.items() if self._awake_ns - heard_ns > self._silence_ns
        )
        for name in lost:
            self.ended(name)
        return lost

"""The search for the highest rate at which a server meets an objective: it asks for rates, and learns
whether they passed.

Must not know trials: the caller measures each rate that it asks for.

>>> asking = search(first_rate=100, most_rate=10_000)
>>> next(asking), asking.send(True), asking.send(True), asking.send(False)
(100.0, 200.0, 400.0, 300.0)
"""

from collections.abc import Generator

__all__ = ["search"]

# From the first rate down to a thousandth of it: a server that passes at none of these cannot serve at all.
_MOST_HALVINGS = 10


def search(
    first_rate: float, most_rate: float, precision: float = 0.02
) -> Generator[float, bool, float | None]:
    """Yield rates to try; each is answered by whether it passed. Return the highest that passed, null if
    none did.

    *Units*: requests per second. ``precision`` is relative.
    *Definition*: from ``first_rate`` the rate is doubled while it passes, at most to ``most_rate``, or halved
    (ten times at most) until it passes. Between the highest that passed, r, and the lowest that did not, R,
    the middle is tried until R <= r (1 + ``precision``). The answer lies within the precision of the
    boundary, or is ``most_rate`` itself.
    *Assumptions*: what passes at one rate passes at all below it. One noisy answer misleads the search, and a
    found rate is the luckiest of those tried: fresh trials must confirm it.
    *Errors*: ValueError, unless 0 < ``first_rate`` <= ``most_rate`` and 0 < ``precision``.
    """
    if not (0 < first_rate <= most_rate and precision > 0):
        raise ValueError(f"cannot search from {first_rate:g}/s to {most_rate:g}/s, to {precision:g}")
    passed, failed = yield from _bracket(float(first_rate), float(most_rate))
    if passed is None or failed is None:
        return passed
    while failed > passed * (1 + precision):
        middle = (passed + failed) / 2
        if (yield middle):
            passed = middle
        else:
            failed = middle
    return passed


def _bracket(first: float, most: float) -> Generator[float, bool, tuple[float | None, float | None]]:
    """Return the highest rate that passed and the lowest that failed, from doubling and halving."""
    if (yield first):
        return (yield from _doubled(first, most))
    failed = first
    for _ in range(_MOST_HALVINGS):
        if (yield failed / 2):
            return failed / 2, failed
        failed /= 2
    return None, failed


def _doubled(passed: float, most: float) -> Generator[float, bool, tuple[float, float | None]]:
    while passed < most:
        rate = min(2 * passed, most)
        if not (yield rate):
            return passed, rate
        passed = rate
    return passed, None

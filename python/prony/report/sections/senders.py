"""Remarks on the generators of a study whose loads came from several machines, or from another one."""

from collections.abc import Iterator

from prony.reading.senders import Sender
from prony.reading.study import Reading
from prony.report.forms import count, duration
from prony.report.machines import kinds_of_machines
from prony.report.text import Figure, Quote, Text, listed, pointer, text

__all__ = ["sender_notes"]

_MOST = 6


def sender_notes(reading: Reading) -> Iterator[Text]:
    """Yield where loads came from, how far apart generators began, and which of them were the limit."""
    found = tuple(enumerate(reading.machines))
    for words in kinds_of_machines([(one.name, one.fingerprint) for _, one in found], "machines"):
        yield text("Load from {}", words)
    began = [(k, one) for k, one in found if one.start_skew_ns is not None]
    if began:
        yield _start(began)
    limits = [_limit(k, one) for k, one in found if one.limited]
    if limits:
        said = "Of the generators, each by itself, these were the limit, or perhaps: {}."
        yield text(said, listed(limits, _MOST))


def _start(began: list[tuple[int, Sender]]) -> Text:
    skew_at, skew = max(began, key=lambda one: one[1].start_skew_ns or 0)
    bound_at, bound = max(began, key=lambda one: one[1].clock_bound_ns or 0)
    return text(
        "Generators began at most {} from their common start, as far as their clocks are known (± {}).",
        Figure(skew.start_skew_ns or 0, duration, pointer("machines", skew_at, "start_skew_ns")),
        Figure(bound.clock_bound_ns or 0, duration, pointer("machines", bound_at, "clock_bound_ns")),
    )


def _limit(k: int, one: Sender) -> Text:
    return text(
        "{} ({} of {} trials)",
        Quote(one.name, pointer("machines", k, "name")),
        Figure(one.limited, count, pointer("machines", k, "limited")),
        Figure(one.trials, count, pointer("machines", k, "trials")),
    )

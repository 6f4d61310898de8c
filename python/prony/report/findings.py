"""Findings in words: the templates of `prony.diagnosis`, and of the generator's limits, with their numbers.

In a template `{share:.0%}` writes the finding's number of that name,
`{role}` its name; `{kills:n process}` a number of things.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from string import Formatter
from types import MappingProxyType

from prony.core.units import format_bytes, format_count, format_duration, format_rate
from prony.diagnosis.evidence import Affected, Confidence, Finding
from prony.diagnosis.kinds import Sentence
from prony.model.limit import GeneratorVerdict, Limit, Limited, LimitKind
from prony.report.text import Figure, Name, Part, Quote, Text, joined, pointer, text

_LIMITS: Mapping[LimitKind, Sentence] = MappingProxyType(
    {
        LimitKind.IN_FLIGHT: Sentence(
            "{connections:n request} at most could be in flight, and from {at_ns:duration} on so many were: "
            "the loop was closed",
            "its limit of requests in flight closed the loop",
        ),
        LimitKind.PORTS: Sentence(
            "{requests:n request} found no free port on its side", "requests found no free port on its side"
        ),
        LimitKind.DESCRIPTORS: Sentence(
            "{requests:n request} found no free descriptor on its side",
            "requests found no free descriptor on its side",
        ),
        LimitKind.BUFFERS: Sentence(
            "the kernel had no memory for {requests:n request} of it",
            "the kernel had no memory for its requests",
        ),
        LimitKind.THROTTLED: Sentence(
            "a quota of CPU stopped it for {share:.1%} of the time", "a quota of CPU stopped it"
        ),
        LimitKind.BUSY: Sentence(
            "a worker thread was busy {share:.0%} of the time", "a worker thread was busy"
        ),
        LimitKind.KEPT_WAITING: Sentence(
            "others kept a worker thread waiting for its CPU {share:.1%} of the time{wait_ns:each}"
            "{late_share:of_replies}",
            "others kept a worker thread waiting for its CPU",
        ),
        LimitKind.LATE: Sentence(
            "requests went out {lag_ns:duration} late at p{percentile:.4g}{share:of_latency}",
            "requests went out late",
        ),
        LimitKind.NEAR_CEILING: Sentence(
            "it was at {share:.0%} of the {ceiling_per_s:rate} that it can reach here",
            "it was near its ceiling",
        ),
        LimitKind.RATE_MISSED: Sentence(
            "it sent {sent_per_s:rate}, {share:.1%} less than was due", "it sent less than was due"
        ),
    }
)
_AFFECTED: Mapping[Affected, str] = MappingProxyType(
    {
        Affected.LATENCY: "latency may be lower than shown",
        Affected.ALL: "throughput may be higher, and latency lower, than shown",
    }
)


def _limited(inner: str, confidence: Confidence, affected: Affected | None) -> str:
    blame = "was" if confidence is Confidence.CERTAIN else "may have been"
    return f"the generator {blame} the limit ({inner}): {_AFFECTED[affected or Affected.ALL]}"


# Constants of the method and of the kernel that contain digits.
_CONSTANTS = {
    # tcp(7): a SYN is repeated after one second, and then after twice as long each time.
    "retries": "1, 3 or 7 s",
    "syn_backlog": "net.ipv4.tcp_max_syn_backlog",
    # select(2): FD_SETSIZE.
    "select_most": "1,024",
}


def finding_words(finding: Finding, at: str) -> Text:
    """Return a finding with the numbers of its trial. ``at``: where the report's JSON has the finding."""
    return _filled(_sentence(finding).full, finding, at)


def shared_words(finding: Finding, at: str) -> Text:
    """Return the part of a finding that several subjects share: without the figures of one trial."""
    sentence = _sentence(finding)
    return _filled(sentence.shared or sentence.full, finding, at)


def _sentence(finding: Finding) -> Sentence:
    kind = finding.kind.traits.limit
    if kind is None:
        return finding.kind.sentence
    inner, sure, moved = _LIMITS[kind], finding.confidence, finding.affected
    return Sentence(_limited(inner.full, sure, moved), _limited(inner.shared, sure, moved))


def advice_words(finding: Finding, at: str) -> Text:
    """Return the advice of a finding; empty where it has none."""
    return Text() if finding.advice is None else _filled(finding.advice.words, finding, at)


def verdict_words(verdict: GeneratorVerdict, affected: Affected, at: str) -> Text:
    """Return a generator's verdict on itself, with all its evidence. ``at``: where the report's JSON has the
    evidence.
    """
    sure = Confidence.CERTAIN if verdict.limited is Limited.YES else Confidence.LIKELY
    evidence = joined((limit_words(one, at + pointer(k)) for k, one in enumerate(verdict.evidence)), by="; ")
    return text(f"{_limited('{}', sure, affected).capitalize()}.", evidence)


def limit_words(limit: Limit, at: str) -> Text:
    """Return which part of a generator was the limit. ``at``: where the report's JSON has its numbers."""
    return joined(_parts(_LIMITS[limit.kind].full, limit.numbers, {}, (at, at)), by="")


def limit_kind_words(kind: LimitKind) -> str:
    """Return which part of a generator was the limit in several trials: without the numbers of one."""
    return _LIMITS[kind].shared


def _filled(template: str, finding: Finding, at: str) -> Text:
    places = (at + pointer("numbers"), at + pointer("names"))
    return joined(_parts(template, finding.numbers, finding.names, places), by="")


def _parts(
    template: str, numbers: Mapping[str, float], names: Mapping[str, str], at: tuple[str, str]
) -> Iterator[Part]:
    """Yield the parts of a template. ``at``: where the JSON has the numbers, and the names."""
    of_numbers, of_names = at
    for literal, field, spec, _ in Formatter().parse(template):
        yield literal
        if field is None:
            continue
        if field in numbers:
            yield _number(Figure(numbers[field], format_count, of_numbers + pointer(field)), spec or "")
        elif field in names:
            name = Quote(names[field], of_names + pointer(field))
            yield text("{} {}", spec, name) if spec else name
        elif field in _CONSTANTS:
            yield Name(_CONSTANTS[field])
        elif not spec:
            raise KeyError(f"a finding has no `{field}`; expected one of {[*numbers, *names]}")


def _number(figure: Figure, spec: str) -> Part:
    """Return a number in the form that the template asks for."""
    kind, _, noun = spec.partition(" ")
    match kind:
        case "":
            return text("{} {}", spec, figure) if noun else figure
        case "n":
            plural = _PLURALS.get(noun, f"{noun}s")
            return text(f"{{}} {noun if figure.value == 1 else plural}", figure)
        case _ if kind in _PHRASES:
            words, form = _PHRASES[kind]
            return text(words, _as(form, figure))
        case _:
            return _as(spec, figure)


_PHRASES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "of_latency": (", {} of the latency there", ".0%"),
        "of_replies": (": {} of the replies were taken late", ".1%"),
        "unanswered": (", and {} of them had no reply in the window", "d"),
        "each": (", {} at a time", "duration"),
    }
)
"""What is said of a number that not every finding has, and the number's form."""


def _as(spec: str, figure: Figure) -> Figure:
    return Figure(figure.value, _FORMS.get(spec) or partial(_formatted, spec), figure.pointer)


_PLURALS: Mapping[str, str] = MappingProxyType(
    {"process": "processes", "worker or thread": "workers and threads", "reply": "replies"}
)


def _formatted(spec: str, value: float) -> str:
    if spec == "d":
        return f"{value:.0f}"
    return format(value, spec).replace("%", " %")


def _times(value: float) -> str:
    return {1: "once", 2: "twice"}.get(int(value), f"{value:.0f} times")


_FORMS: Mapping[str, Callable[[float], str]] = MappingProxyType(
    {"times": _times, "rate": format_rate, "duration": format_duration, "bytes": format_bytes}
)

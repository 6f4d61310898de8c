"""TERMS: the words of Prony's pages and reports, each defined once.

`scripts/reference` makes docs/glossary.md from it, with a heading for each term, to link to. Help and reports
name the terms that they use, or link to them.

>>> TERMS["send lag"].partition(":")[0]
'How late the generator itself sent a request that it could have sent'
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

PLACE = "docs/glossary.md"
"""The page of the docs that defines the terms."""

TERMS: Mapping[str, str] = MappingProxyType(
    {
        "account": (
            "The list of all requests of a window, by how each one ended: answered as expected, or "
            "one kind of failure. Every request has exactly one class, and the classes add up to the "
            "number of scheduled requests. Requests that were carried in are listed apart."
        ),
        "attempt": (
            "One try at a trial. When the machine disturbs a trial, Prony repeats the trial at the "
            "end of its block, at most twice. All attempts stay in the archive; the last one counts."
        ),
        "block": (
            "One round of a study: every cell is measured once, in random order. Subjects are "
            "compared within blocks, so a slow quarter of an hour on the machine affects them alike. "
            "The number of blocks is the number of repeats."
        ),
        "calibration": (
            "Measurements of Prony's reference server during a study: first, last and once in each "
            "block. The reference server always does the same work, so a change in its figures is a "
            "change of the machine. The command `prony calibrate` is something else: it measures what "
            "monitors and sandboxes cost."
        ),
        "carried in": (
            "Said of requests that were begun in the warm-up and are still open when the window "
            "opens. They belong to the account in a class of its own, to the share of errors and to "
            "the latencies of all requests, with their whole age: a server that stops answering in "
            "the warm-up loses them."
        ),
        "carried over": (
            "Said of what one phase leaves to the next. On the host's loopback, sockets in TIME_WAIT "
            "carry over from one trial to the next; a network namespace for each trial prevents it. "
            "For requests see carried in."
        ),
        "cell": (
            "One subject under one load, sent by one generator, in one sandbox. A study is a grid of "
            "cells; each cell is measured once in each block."
        ),
        "censored": (
            "Said of a latency that is only known to be longer than some time, because the request "
            "got no answer. The request stays in the distribution of all requests with its age when "
            "Prony gave up. Percentiles that fall among such requests are lower bounds."
        ),
        "claim": (
            "One statement of a published experiment, written so that a repeat can test it: which "
            "subjects, which load, which metric, which bounds. Its verdict is holds, does not hold, "
            "cannot tell or not testable here."
        ),
        "closed loop": (
            "A load with a fixed number of connections. Each connection sends its next request when "
            "the reply to the last one has arrived, so the server sets the pace. It measures the "
            "highest throughput; it hides stalls, because a server that stops also stops the "
            "requests."
        ),
        "coordinated omission": (
            "An error of measurement: the generator waits while the server stalls, and the requests "
            "that should have been sent in that time are missing from the latencies. An open loop "
            "that measures from the intended send time avoids it."
        ),
        "cross-check": (
            "The same cell measured a second time in each block by another generator, such as wrk. It "
            "shows whether Prony's own figures can be trusted."
        ),
        "drain": (
            "The time after the window in which Prony waits for replies to requests of the window. No "
            "new requests are sent."
        ),
        "equivalent": (
            "The verdict that two subjects differ by less than the margin, shown by a test of its own "
            '(two one-sided tests). It says more than "not separated", which only means that no '
            "difference was found."
        ),
        "family": (
            "The comparisons that are read together, for example all subjects against the leader in "
            "one metric. More comparisons mean more chances of a false one, so Prony makes each "
            "interval of a family wider (Holm's procedure)."
        ),
        "generator": (
            "The program that sends the load: Prony's own engine, or another tool such as wrk. When "
            "the generator is the limit, the figures describe it and not the server; reports say when "
            "that may be so."
        ),
        "intended send time": (
            "The moment at which a request is due by the plan of an open loop, whether or not it "
            "could be sent then. Response time starts here."
        ),
        "interval": (
            "The range in which the true value lies, with a stated confidence, usually 95 %. It "
            "describes this machine in this session: another day can give figures outside it."
        ),
        "leader": (
            "The subject with the best figure in the metric that decides, by the geometric mean over "
            "blocks. Others may not be separated from it; then the leader is only the first of a "
            "group."
        ),
        "load": (
            "What a subject has to answer: closed or open loop, number of connections or rate, "
            "request, duration and time-out. Studies also call it a workload."
        ),
        "margin": (
            "The smallest difference that is of interest, 2 % unless a study sets another. A "
            "difference counts as higher or lower only when its whole interval lies beyond the "
            "margin."
        ),
        "noise floor": (
            "The difference that this machine shows between two measurements of the same server: 95 "
            "of 100 such comparisons stay below it. `prony selftest aa` measures it, and `prony run "
            "--dry-run` foresees by it what a study will find. Verdicts do not need it: intervals "
            "hold the noise that a study shows."
        ),
        "not separated": (
            "No difference was found between two subjects: they are too close, or the figures vary "
            "too much. In tables such subjects share a letter. It does not mean that they are equal."
        ),
        "open loop": (
            "A load with a fixed arrival rate: requests are due at planned times, whatever the server "
            "does. A server that stalls gets late requests, and their waiting time is counted. Use it "
            "for latency."
        ),
        "paired": (
            "Compared within blocks: both subjects were measured in the same block, so disturbances "
            "of the whole block cancel. Two archives cannot be paired; the difference then includes "
            "any change of the machine."
        ),
        "qualified": (
            "Said of a subject whose speed may be compared: at most 0.1 % of its requests failed, at "
            "most one trial in five does not count, and it did not starve its connections. Figures of "
            "the others are shown but not compared."
        ),
        "response time": (
            "The time from the intended send time of a request to the last byte of its reply. It is "
            "what a user waits. It exists in an open loop only."
        ),
        "role": (
            "What a process of a subject is for, such as master, worker, frontend or database. CPU "
            "and memory are reported for all processes together and by role."
        ),
        "saturation": (
            "The load from which more load brings no more throughput, only longer latency. Prony "
            "names the smallest load that reaches 95 % of the highest throughput."
        ),
        "screening": (
            "Comparisons under loads or metrics that the study was not designed for. About 5 % of the "
            "differences found there are false, so treat them as hints."
        ),
        "send lag": (
            "How late the generator itself sent a request that it could have sent: the send time "
            "minus the time when the request was due and a connection was free. It is the generator's "
            "error, not the server's."
        ),
        "service time": (
            "The time from sending a request to the last byte of its reply. It leaves out the time "
            "that the request waited before it could be sent. In a closed loop it is the only "
            "latency."
        ),
        "starvation": (
            "A server answers some connections again and again and others never. Prony calls a "
            "subject starved when more than a tenth of the connections got no reply in the window "
            "while others got three or more. Its latencies look good because only the served "
            "connections have any."
        ),
        "steady state": (
            "A window in which the pace does not change more than noise explains. Without it a mean "
            "describes a mixture, for example of a slow warm-up and a fast rest. Prony looks at valid "
            "replies (in an open loop at their share of the requests due) and at the median latency of "
            "each second; a tail that changes alone is not tested."
        ),
        "subject": (
            "What is measured: one server (with a variant and settings, perhaps behind a frontend) "
            "with one app. Its name joins them, as in `uwsgi-socket@nginx+flask-hello`."
        ),
        "time-out": (
            "The longest time that a request may take. After it Prony gives the request up and closes "
            "the connection. The latency of such a request is censored. A load may have two: one until a "
            "connection is there, and one from then on for the reply."
        ),
        "trial": (
            "One measurement of one cell: a fresh server in a fresh sandbox, warm-up, window, drain, "
            "stop. A trial gives one value of each metric. Comparisons count trials, never requests."
        ),
        "variant": (
            "A named set of settings of a server, such as `gunicorn-gthread`. `as-found` is a server "
            "as a published experiment ran it; `tuned` follows the server's own documentation."
        ),
        "verdict": (
            "What Prony says of a difference: higher, lower, equivalent, different but perhaps "
            "trivial, or not shown. The rules are fixed before the first trial."
        ),
        "warm-up": (
            "The load before the window, on the same connections. What ends in it is not recorded, so "
            "that start-up costs do not enter the figures. What is open at its end is carried in."
        ),
        "window": (
            "The part of a trial in which requests are recorded. A request belongs to the window in "
            "which it was due (open loop) or begun (closed loop), even when its reply comes later."
        ),
    }
)
"""Term to definition, in alphabetical order: two or three sentences of plain text."""

# No part of a longer name (`load-scripts`, `a+hello`); a line may end within a term.
_TERM = re.compile(
    r"(?<![\w+@./-])({})(s?)(?![\w+@/-])".format(
        "|".join(re.escape(term).replace(r"\ ", r"\s+") for term in sorted(TERMS, key=len, reverse=True))
    ),
    re.IGNORECASE,
)


def replaced(text: str, change: Callable[[str, str], str]) -> str:
    """Return ``text`` with ``change(term, words)`` in place of each term's words, plurals among them.

    >>> replaced("2 blocks", lambda term, words: f"{words} ({term})")
    '2 blocks (block)'
    """
    return _TERM.sub(lambda found: change(_term(found), found[0]), text)


def terms_in(text: str) -> tuple[str, ...]:
    """Return the terms that a text uses, in alphabetical order.

    >>> terms_in("Send lags of an open\\nloop, not of load-scripts.")
    ('open loop', 'send lag')
    """
    return tuple(sorted({_term(found) for found in _TERM.finditer(text)}))


def anchor(term: str) -> str:
    """Return the name of a term's heading in a link.

    >>> anchor("open loop")
    'open-loop'
    """
    return term.replace(" ", "-")


def _term(found: re.Match[str]) -> str:
    return " ".join(found[1].lower().split())

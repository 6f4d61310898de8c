"""Findings in words: a sentence for each kind, the part of it that several subjects share, and the advice.

The only place that has these words. In a template `{share:.0%}` writes the finding's number of that name,
`{role}` its name; `{kills:n process}` a number of things.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from string import Formatter
from types import MappingProxyType

from prony.diagnosis import Advice, Affected, Confidence, Finding, Symptom
from prony.model.limit import GeneratorVerdict, Limit, Limited, LimitKind
from prony.report.text import Figure, Name, Part, Quote, Text, joined, pointer, text
from prony.units import format_bytes, format_count, format_duration, format_rate


@dataclass(frozen=True, slots=True)
class _Sentence:
    """``full``: with the numbers of one trial; ``shared``: without them, empty where nothing is left."""

    full: str
    shared: str = ""


_PACKETS = "the kernel's packet processing may have been the limit"
_STOLEN = "the hypervisor gave CPU time of this machine to others: compare only within a block"
_HEAT = "CPUs of this machine were hot and slowed down: compare only within a block"
_OTHERS = "other programs ran on its CPUs"
_BESIDE = "other programs ran on the generator's CPUs"
_STRAYED = (
    "chose CPUs outside the server's set, perhaps the generator's: throughput and latency describe both"
)
_WAIT = ": their clients wait {retries}"
_DROPPED = "{dropped:n request} to connect dropped although the listen queue had room"

_LIMITS: Mapping[LimitKind, _Sentence] = MappingProxyType(
    {
        LimitKind.IN_FLIGHT: _Sentence(
            "{connections:n request} at most could be in flight, and from {at_ns:duration} on so many were: "
            "the loop was closed",
            "its limit of requests in flight closed the loop",
        ),
        LimitKind.PORTS: _Sentence(
            "{requests:n request} found no free port on its side", "requests found no free port on its side"
        ),
        LimitKind.DESCRIPTORS: _Sentence(
            "{requests:n request} found no free descriptor on its side",
            "requests found no free descriptor on its side",
        ),
        LimitKind.BUFFERS: _Sentence(
            "the kernel had no memory for {requests:n request} of it",
            "the kernel had no memory for its requests",
        ),
        LimitKind.THROTTLED: _Sentence(
            "a quota of CPU stopped it for {share:.1%} of the time", "a quota of CPU stopped it"
        ),
        LimitKind.BUSY: _Sentence(
            "a worker thread was busy {share:.0%} of the time", "a worker thread was busy"
        ),
        LimitKind.KEPT_WAITING: _Sentence(
            "others kept a worker thread waiting for its CPU {share:.1%} of the time{wait_ns:each}"
            "{late_share:of_replies}",
            "others kept a worker thread waiting for its CPU",
        ),
        LimitKind.LATE: _Sentence(
            "requests went out {lag_ns:duration} late at p{percentile:.4g}{share:of_latency}",
            "requests went out late",
        ),
        LimitKind.NEAR_CEILING: _Sentence(
            "it was at {share:.0%} of the {ceiling_per_s:rate} that it can reach here",
            "it was near its ceiling",
        ),
        LimitKind.RATE_MISSED: _Sentence(
            "it sent {sent_per_s:rate}, {share:.1%} less than was due", "it sent less than was due"
        ),
    }
)
_LIMIT_OF: Mapping[Symptom, LimitKind] = MappingProxyType(
    {
        Symptom.GENERATOR_AT_LIMIT: LimitKind.IN_FLIGHT,
        Symptom.GENERATOR_WITHOUT_PORTS: LimitKind.PORTS,
        Symptom.GENERATOR_WITHOUT_DESCRIPTORS: LimitKind.DESCRIPTORS,
        Symptom.GENERATOR_WITHOUT_BUFFERS: LimitKind.BUFFERS,
        Symptom.GENERATOR_THROTTLED: LimitKind.THROTTLED,
        Symptom.GENERATOR_BUSY: LimitKind.BUSY,
        Symptom.GENERATOR_KEPT_WAITING: LimitKind.KEPT_WAITING,
        Symptom.GENERATOR_LATE: LimitKind.LATE,
        Symptom.GENERATOR_NEAR_CEILING: LimitKind.NEAR_CEILING,
        Symptom.GENERATOR_MISSED_RATE: LimitKind.RATE_MISSED,
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


_SENTENCES: Mapping[Symptom, _Sentence] = MappingProxyType(
    {
        Symptom.STRAYED: _Sentence(f"{{strays}} of its processes {_STRAYED}", f"processes of it {_STRAYED}"),
        Symptom.KILLED_FOR_MEMORY: _Sentence(
            "{kills} of its processes were killed for exceeding the memory limit"
        ),
        Symptom.ENDED_UNDER_LOAD: _Sentence("it ended during the load: {reason}"),
        Symptom.RESTARTED: _Sentence(
            "a {role} was restarted {restarts:times} within the window: what it worked on may be lost",
            "a {role} was restarted within the window: what it worked on may be lost",
        ),
        Symptom.LOST: _Sentence(
            "{ended:n process} of the role {role} ended within the window without a replacement"
        ),
        Symptom.THROTTLED: _Sentence(
            "its CPU quota throttled it in {share:.0%} of its scheduling periods: the quota limited its "
            "throughput and its tail latency",
            "its CPU quota throttled it: the quota limited its throughput and its tail latency",
        ),
        Symptom.QUEUE_OVERFLOWED: _Sentence(
            "{overflows:n connection} arrived when the listen queue{limit: of}{process: of the} was full"
            + _WAIT
            + "{without_reply:unanswered}"
        ),
        Symptom.SOME_QUEUE_OVERFLOWED: _Sentence(
            "{overflows:n connection} on this machine arrived when a listen queue was full, perhaps this "
            "server's{limit: of}{process: of the}" + _WAIT
        ),
        Symptom.QUEUE_FULL: _Sentence(
            "the listen queue{process: of the} was full: {longest:n connection} at a limit of {limit}, the "
            "next one would have been dropped"
        ),
        Symptom.BACKLOG_CLIPPED: _Sentence(
            "it asked for a listen queue of {asked:d}, and the kernel gave {given:d}"
        ),
        Symptom.HALF_OPEN_QUEUE_FULL: _Sentence(f"{_DROPPED}: the queue of half-open connections was full"),
        Symptom.CONNECTS_DROPPED: _Sentence(f"{_DROPPED}: the kernel lacked memory or a route"),
        Symptom.CONNECTS_REPEATED: _Sentence(
            "{share:.1%} of {connects:n connect} took {retries}: the first request was lost, and no queue "
            "here counted it",
            "connects took {retries}: the first request was lost, and no queue here counted it",
        ),
        Symptom.STARVED: _Sentence(
            "only {served} of {connections} connections were answered in the window: throughput and "
            "latency describe only those"
        ),
        Symptom.STARVED_BY_SLOTS: _Sentence(
            "only {served} of {connections} connections were answered in the window, as many as it has "
            "workers and threads: throughput and latency describe only those"
        ),
        Symptom.CONNECTION_CAP: _Sentence(
            "it had {cap:n connection} open of {connections}, no more and no fewer, and {waiting} or more "
            "waited in its listen queue all the time: throughput and latency describe only those it took"
        ),
        Symptom.PACKETS_DROPPED: _Sentence(f"{_PACKETS}: it dropped {{dropped:n packet}}", _PACKETS),
        Symptom.KERNEL_BUSY: _Sentence(
            f"{_PACKETS}: one CPU did nothing else for {{softirq_share:.0%}} of the time", _PACKETS
        ),
        Symptom.STOLEN: _Sentence(f"{_STOLEN} ({{share:.1%}})", _STOLEN),
        Symptom.HEAT: _Sentence(f"{_HEAT} ({{times:n time}})", _HEAT),
        Symptom.OTHERS_RAN: _Sentence(f"{_OTHERS}, for {{share:.0%}} of their time", _OTHERS),
        Symptom.OTHERS_RAN_BESIDE_GENERATOR: _Sentence(
            f"{_BESIDE}, for {{share:.0%}} of the time of the trial's CPUs", _BESIDE
        ),
        Symptom.WAITED_FOR_MEMORY: _Sentence(
            "it waited for memory in {share:.0%} of the time", "it waited for memory"
        ),
        Symptom.MACHINE_WAITED_FOR_MEMORY: _Sentence(
            "programs on this machine waited for memory in {share:.0%} of the time",
            "programs on this machine waited for memory",
        ),
        Symptom.POOL_GREW: _Sentence(
            "{more} more processes of the role {role} ran at the end of the window than at its beginning: "
            "the pool was still growing",
            "its pool of processes was still growing within the window",
        ),
        Symptom.ONE_THREAD_FULL: _Sentence(
            "one process{process: of the} filled one core with one thread, while others of its {cpus} CPUs "
            "were free"
        ),
        Symptom.ONE_CORE_FULL: _Sentence(
            "one process{process: of the} filled one core with {threads} threads that took turns, while "
            "others of its {cpus} CPUs were free"
        ),
        Symptom.SLOTS_BUSY: _Sentence(
            "its {slots:n worker or thread} had requests all the time, each for {held_ns:duration}, and "
            "others waited, while its CPUs were busy {cpu_share:.0%} of the time: it waits for something "
            "else{waits:, mostly}",
            "all its workers and threads had requests, and others waited, while its CPUs were not busy: "
            "it waits for something else{waits:, mostly}",
        ),
        Symptom.OVERLOADED: _Sentence(
            "{asked_per_s:rate} were asked for, and it did {done_per_s:rate}: the queue grew to "
            "{owed:n request}",
            "more was asked for than it can do: its queue grew all the time",
        ),
        Symptom.CLOSED_AFTER_EACH: _Sentence(
            "it closed each connection after one reply: {reconnects:n connect} for {done:n request}",
            "it closed each connection after one reply: each request pays for a connect",
        ),
        Symptom.SILENT_AFTER_ONE: _Sentence(
            "no connection was answered a second time, and none was closed: {waited:n request} waited in vain"
        ),
        Symptom.WRONG_REPLIES: _Sentence(
            "{wrong:n reply} of {done} had another status or body than expected, {share:.1%}",
            "replies had another status or body than expected",
        ),
        Symptom.REFUSED: _Sentence(
            "it refused {refused:n request} of {done} as they were sent, most with status {status:d}",
            "it refused requests as they were sent",
        ),
        Symptom.FIGURES_CONTRADICT: _Sentence(
            "requests in flight differ by {off:.0%} from rate times latency (Little's law): the generator's "
            "figures cannot all be true",
            "requests in flight are not rate times latency (Little's law): the generator's figures cannot "
            "all be true",
        ),
        Symptom.UNEQUAL_WORK: _Sentence(
            "its replies have {own_bytes:bytes}, heads included, and those of {other} {other_bytes:bytes}"
        ),
        Symptom.PORTS_KEPT_BY_EARLIER: _Sentence(
            "no port was free: earlier trials had left {carried:n socket} in TIME_WAIT on the host's "
            "network, which has {ports:n port}"
        ),
        Symptom.SERVER_WITHOUT_PORTS: _Sentence(
            "it ran out of ports for its own connections to others{process:, those of the}: "
            "{waiting:n socket} in TIME_WAIT"
        ),
        Symptom.DESCRIPTORS_USED_UP: _Sentence("it has no file descriptor left{limit: of}"),
        Symptom.SELECT_FULL: _Sentence(
            "it waits for connections with select(), which knows {select_most} descriptors, and "
            "{connections:n connection} were open"
        ),
        Symptom.REPLIES_HELD_BACK: _Sentence(
            "{share:.0%} of the replies took the {delay_ns:duration} of a delayed acknowledgement: it writes "
            "them in parts, and the kernel holds back the later ones (Nagle)",
            "replies took the time of a delayed acknowledgement: it writes them in parts, and the kernel "
            "holds back the later ones (Nagle)",
        ),
        Symptom.MEMORY_GREW: _Sentence(
            "its memory grew by {grown_bytes:bytes} from {first_bytes:bytes} on, {per_request_bytes:bytes} a "
            "request, all through the window",
            "its memory grew with its requests, all through the window",
        ),
        Symptom.FORKED_FOR_EACH: _Sentence(
            "it started {forks:n process} for {done:n request}",
            "it started a process for each request",
        ),
        Symptom.CROWDED: _Sentence(
            "{ready:.1f} of its threads ran or were ready to, on average, on {cpus:n CPU}: they took turns",
            "more of its threads were ready to run than it has CPUs: they took turns",
        ),
        Symptom.UNEVEN_WORKERS: _Sentence(
            "of its {workers:n worker} one used {most_cores:.0%} of a core, another {least_cores:.0%}: "
            "connections stick to few of them",
            "one worker had most of the work: connections stick to few of them",
        ),
        Symptom.UNEVEN_CONNECTIONS: _Sentence(
            "of its {workers:n worker} one had {most:n connection}, another {least}, each works on {slots} "
            "at once: connections stick to few of them",
            "one worker had more connections than it works on at once, another fewer: connections stick to "
            "few of them",
        ),
        Symptom.TRACKING_FULL: _Sentence(
            "the kernel's table of tracked connections was full ({entries}{most: of}): it dropped "
            "{dropped:n packet}"
        ),
        Symptom.PAGES_MOVED: _Sentence(
            "memory of this machine changed its form within the window: {huge_pages:n huge page} came or "
            "went, {migrated:n page} went to another node",
            "memory of this machine changed its form within the window",
        ),
        Symptom.STILL_COLD: _Sentence(
            "it did {early_per_s:rate} in the first {seconds:n second}, and {late_per_s:rate} after them: it "
            "was still warming up",
            "it was still warming up within the window",
        ),
        Symptom.DEBUGGING: _Sentence("it runs in a mode for development: {sign}"),
        Symptom.LOCK_HELD: _Sentence(
            "its {slots:n worker or thread} had requests, and others waited, while {same_share:.0%} of the "
            "time of its threads went to one lock",
            "all its workers and threads had requests, and most of them waited for one lock",
        ),
        Symptom.DISK_WAITED: _Sentence(
            "its threads waited for the disk for {share:.0%} of their time, most of what they did at all",
            "its threads mostly waited for the disk",
        ),
        Symptom.DOWNSTREAM_BUSY: _Sentence(
            "its {connections:n connection} to others (port {port:d}) waited for replies {share:.0%} of the "
            "time, and more requests were open",
            "its connections to others waited for replies all the time, and more requests were open",
        ),
    }
)

_ADVICE: Mapping[Advice, str] = MappingProxyType(
    {
        Advice.LEAVE_CPUS_TO_GENERATOR: "keep other programs off the generator's CPUs, give it more CPUs, "
        "or lower the load",
        Advice.RAISE_CONNECTIONS: "allow the generator more connections, or lower the rate",
        Advice.RAISE_PORTS: "widen net.ipv4.ip_local_port_range, or keep connections open",
        Advice.RAISE_DESCRIPTORS: "raise the generator's limit of open files",
        Advice.RAISE_GENERATOR_QUOTA: "raise the quota of CPU that holds the generator",
        Advice.FEWER_CONNECTIONS: "use fewer connections, or raise net.ipv4.tcp_mem",
        Advice.PACE_PRECISELY: "use --pacing precise, and give the generator CPUs of its own",
        Advice.ADD_GENERATOR_THREADS: "give the generator more threads and CPUs, or lower the load",
        Advice.HOLD_TO_CPUS: "turn off its own choice of CPUs, or confine it with --sandbox cgroup",
        Advice.RAISE_MEMORY: "raise the memory limit, or run fewer workers",
        Advice.READ_LOG_FOR_LIMITS: "read its log; the server may limit the time or the requests of a worker",
        Advice.READ_LOG: "read its log",
        Advice.RAISE_QUOTA: "raise the quota, or give it whole CPUs instead; run no more workers than the "
        "quota allows",
        Advice.RAISE_BACKLOG: "raise the server's backlog (and net.core.somaxconn if lower), or its number "
        "of workers",
        Advice.RAISE_SOMAXCONN: "raise net.core.somaxconn: `sysctl -w net.core.somaxconn={asked:d}`",
        Advice.RAISE_SYN_BACKLOG: "raise {syn_backlog}",
        Advice.ADD_WORKERS: "give it more workers or threads, or put a proxy in front",
        Advice.ADD_WORKERS_OR_CLOSE: "give it more workers or threads, turn keep-alive off, or put a proxy "
        "in front",
        Advice.RAISE_NETDEV_BACKLOG: "raise net.core.netdev_max_backlog",
        Advice.REPEAT_ELSEWHERE: "repeat the study at another time, or on a machine of its own",
        Advice.COOL: "cool the machine, or limit its CPU frequency to one that it can hold",
        Advice.END_OTHERS: "stop the other programs, and repeat the study",
        Advice.WARM_UP_LONGER: "use a longer warm-up, or start the pool at its full size",
        Advice.ADD_PROCESSES: "add processes, not threads",
        Advice.ADD_THREADS: "add threads or workers, or shorten what each waits for",
        Advice.ASK_FOR_LESS: "ask for a rate that it can do, or compare throughput in a closed loop",
        Advice.KEEP_ALIVE: "turn its keep-alive on, where it has one",
        Advice.READ_LOG_FOR_ERRORS: "read its log, and ask for such a page by hand",
        Advice.CHANGE_REQUEST: "send such a request by hand, and change its Host (-H), its method (-m), its "
        "headers or its size",
        Advice.FEWER_WORKERS: "try half as many workers or threads: they may do the same",
        Advice.KEEP_CONNECTIONS: "keep its connections to others open, or widen net.ipv4.ip_local_port_range",
        Advice.RAISE_SERVER_DESCRIPTORS: "raise its limit of open files (LimitNOFILE, ulimit -n)",
        Advice.TAKE_EPOLL: "take an event loop on epoll, or more processes with fewer connections each",
        Advice.SEND_AT_ONCE: "set TCP_NODELAY, or write head and body of a reply at once",
        Advice.FIND_LEAK: "measure for longer; if it goes on, look for what its app keeps of each request",
        Advice.KEEP_PROGRAMS: "keep a program running and hand it the work, or do it in the process",
        Advice.SPREAD_CONNECTIONS: "give each worker a listening socket of its own (SO_REUSEPORT), more "
        "workers, or a proxy in front that spreads requests",
        Advice.WARM_UP_FIRST: "use a longer warm-up",
        Advice.TURN_DEBUG_OFF: "start it as in production",
        Advice.SHORTEN_LOCK: "hold the lock for less, or give each process its own: add processes, not "
        "threads",
        Advice.LOG_LATER: "write its log to memory or to another process, and not to the disk line by line",
        Advice.RAISE_TRACKING: "raise net.netfilter.nf_conntrack_max, or leave its packets untracked",
        Advice.PIN_MEMORY: "set transparent_hugepage to madvise, and bind the server to one memory node",
        Advice.RAISE_CONNECTION_CAP: "raise the number of connections that it may have open, or put a proxy "
        "in front",
        Advice.OWN_NETWORK: "measure in a network of its own (as root, or where users may have one), or wait "
        "a minute between trials",
        Advice.CROSS_CHECK: "measure with another generator beside it (--cross-check), and report it",
        Advice.SEND_THE_SAME: "let all send the same page and header fields, or say it beside the figures",
        Advice.RAISE_POOL: "give it more connections to ask with, or make what it asks quicker",
    }
)

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


def _sentence(finding: Finding) -> _Sentence:
    kind = _LIMIT_OF.get(finding.kind)
    if kind is None:
        return _SENTENCES[finding.kind]
    inner, sure, moved = _LIMITS[kind], finding.confidence, finding.affected
    return _Sentence(_limited(inner.full, sure, moved), _limited(inner.shared, sure, moved))


def advice_words(finding: Finding, at: str) -> Text:
    """Return the advice of a finding; empty where it has none."""
    return Text() if finding.advice is None else _filled(_ADVICE[finding.advice], finding, at)


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

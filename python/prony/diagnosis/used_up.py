"""D05 to D08: what the kernel had no more of: ports, entries in its table of connections, descriptors.

D05: the server, or its frontend, found no free port for a connection to another server.

Who closes a connection first keeps its port for 60 s (TIME_WAIT), towards the same peer: a database, another
server, or the server behind a frontend. Sockets that wait at its own port cost it none, and those of the
generator's connections are a finding about the generator. *Source*: RFC 9293, section
3.6.1; kernel, Documentation/networking/ip-sysctl.rst, ip_local_port_range and tcp_tw_reuse.

D06: sockets that earlier trials left on the host's network keep the ports that this one needs.

Who closes a connection first keeps its port for 60 s (TIME_WAIT), towards the same peer: a database that
outlives the trial, for example. A network of the trial's own begins without any. Where all goes well such
sockets are no finding: over loopback tcp_tw_reuse lets them be used again. *Source*: RFC 9293, section 3.6.1;
kernel, Documentation/networking/ip-sysctl.rst, tcp_tw_reuse.

D07: the firewall's table of connections was full, so that packets of new ones were dropped.

Only where something tracks connections: address translation of containers, a firewall with states.
*Source*: kernel, Documentation/networking/nf_conntrack-sysctl.rst; net/netfilter/nf_conntrack_core.c.

D08: the server had no descriptor left for another connection, or waits with select(2), which knows 1,024.

*Source*: getrlimit(2), RLIMIT_NOFILE; accept(2), EMFILE; select(2): FD_SETSIZE.
"""

import re

from prony.diagnosis.evidence import Confidence, Evidence, Finding, went_without
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.knobs import Turned
from prony.diagnosis.shared import CONNECT_WAITS, FEWER_CONNECTIONS, OF_ERRORS, OF_THE_SERVED
from prony.figures.generator import NEARLY_ALL_PORTS, generator_lacked_ports, own_waiting, server_lacked_ports

MORE_PORTS = Experiment(
    "more ports", "measure with kept connections, or a wider range of ports; failures end"
)
KEEP_CONNECTIONS = Advice(
    "keep its connections to others",
    "keep its connections to others open, or widen net.ipv4.ip_local_port_range",
    turned=(Turned.UPSTREAM,),
)
SERVER_WITHOUT_PORTS = Symptom(
    "server without ports",
    Meaning(Bearing.LIMITS, OF_ERRORS, MORE_PORTS, KEEP_CONNECTIONS),
    "it ran out of ports for its own connections to others{process:, those of the}: {waiting:n "
    "socket} in TIME_WAIT",
    traits=Traits(cause="its ports"),
)
"""``ports`` of its network, ``waiting``: sockets in TIME_WAIT at the window's end; the name ``process``,
    where it is not the server that lacked them."""


# Of the ports: where so few wait after connections, others were free.
_FEW_WAITING = 0.5


def server_ports(evidence: Evidence) -> list[Finding]:
    """Return a finding when its log says so, or most ports wait after connections to others that were closed.

    Certain: both. Possible: only one of them, and no client went without, or half of the ports at least were
    free, whatever its log says: it has lines from before the window too, and over loopback tcp_tw_reuse lets
    ports be used again. None where earlier trials keep more of them.
    """
    if any(one.confidence is not Confidence.POSSIBLE for one in earlier_trials(evidence)):
        return []
    counters, waiting = evidence.trial.counters, own_waiting(evidence.trial)
    ports, said = counters.get("ports", 0), server_lacked_ports(evidence.trial)
    full = ports > 0 and waiting >= NEARLY_ALL_PORTS * ports
    # Where they were not counted by their peers, there may be more.
    refuted = "ports.waiting" in counters and waiting + _most_open(evidence) < _FEW_WAITING * ports
    if not (said or full):
        return []
    if said and full:
        sure = Confidence.CERTAIN
    else:
        sure = Confidence.LIKELY if went_without(evidence.trial) and not refuted else Confidence.POSSIBLE
    return [
        Finding(
            SERVER_WITHOUT_PORTS,
            sure,
            {"waiting": waiting} | ({"ports": ports} if ports else {}),
            _process(evidence, waiting) if full else {},
        )
    ]


def _most_open(evidence: Evidence) -> int:
    """Return the most connections to others that a look found open: each has a port too."""
    gauges = (one.gauges for one in evidence.samples)
    return max((one.get("downstream.connections", 0) for one in gauges), default=0)


def _process(evidence: Evidence, waiting: int) -> dict[str, str]:
    """Return that they are a frontend's, where the peer with the most of them is the server behind it."""
    of_frontend = evidence.trial.counters.get("ports.waiting_frontend")
    return {"process": "frontend"} if of_frontend == waiting else {}


# --- D06 --------------------------------------------------------------------------------------------------

FRESH_NETWORK = Experiment(
    "a fresh network", "measure in a network of its own, or a minute later; failures end"
)
OWN_NETWORK = Advice(
    "a network of its own",
    "measure in a network of its own (as root, or where users may have one), or wait a minute between trials",
)
PORTS_KEPT_BY_EARLIER = Symptom(
    "ports kept by earlier trials",
    Meaning(Bearing.LIMITS, OF_ERRORS, FRESH_NETWORK, OWN_NETWORK),
    "no port was free: earlier trials had left {carried:n socket} in TIME_WAIT on the host's network,"
    " which has {ports:n port}",
    traits=Traits(cause="ports that earlier trials keep"),
)
"""``carried``: sockets in TIME_WAIT when the trial began; ``ports`` of the host's network."""


# Of the ports that the kernel gives out: fewer sockets that were left are no reason why somebody found none.
_LEAST_LEFT = 0.1


def earlier_trials(evidence: Evidence) -> list[Finding]:
    """Return a finding when somebody found no port, and earlier trials had left a tenth of them or more.

    Certain: with these sockets most ports wait, without them they would not. Likely: they are more than those
    of its own connections. Possible: others hold ports too.
    """
    trial = evidence.trial
    ports, carried = trial.counters.get("ports", 0), trial.counters.get("CarriedTimeWait", 0)
    if not ports or carried < _LEAST_LEFT * ports:
        return []
    if not (server_lacked_ports(trial) or generator_lacked_ports(trial)):
        return []
    own = own_waiting(trial)
    if own + carried >= NEARLY_ALL_PORTS * ports > own:
        sure = Confidence.CERTAIN
    else:
        sure = Confidence.LIKELY if carried > own else Confidence.POSSIBLE
    return [Finding(PORTS_KEPT_BY_EARLIER, sure, {"carried": carried, "ports": ports})]


# --- D07 --------------------------------------------------------------------------------------------------

LARGER_TABLE = Experiment(
    "a larger table", "measure with twice the table, or untracked packets; none is dropped"
)
RAISE_TRACKING = Advice(
    "raise the table of connections", "raise net.netfilter.nf_conntrack_max, or leave its packets untracked"
)
TRACKING_FULL = Symptom(
    "table of connections full",
    Meaning(Bearing.LIMITS, CONNECT_WAITS, LARGER_TABLE, RAISE_TRACKING),
    "the kernel's table of tracked connections was full ({entries}{most: of}): it dropped {dropped:n packet}",
    traits=Traits(cause="the kernel's table of connections", turned_away="dropped"),
)
"""``dropped`` packets; ``entries`` of ``most`` in the end, if known."""


_NEARLY_FULL = 0.95


def tracking_full(evidence: Evidence) -> list[Finding]:
    """Return a finding when packets were dropped for want of room in the table, or it is nearly full."""
    counters = evidence.trial.counters
    entries, dropped = counters.get("conntrack.entries", 0), counters.get("conntrack.dropped", 0)
    most = counters.get("conntrack.most", 0)
    full = most > 0 and entries >= _NEARLY_FULL * most
    if not (dropped > 0 or full):
        return []
    sure = Confidence.LIKELY if evidence.is_on_host or not (dropped > 0 and full) else Confidence.CERTAIN
    return [
        Finding(
            TRACKING_FULL,
            sure if dropped > 0 else Confidence.POSSIBLE,
            {"dropped": dropped, "entries": entries} | ({"most": most} if most else {}),
        )
    ]


# --- D08 --------------------------------------------------------------------------------------------------

MORE_DESCRIPTORS = Experiment(
    "more descriptors", "measure with twice the limit; all connections are answered"
)
RAISE_SERVER_DESCRIPTORS = Advice(
    "raise the server's limit of descriptors", "raise its limit of open files (LimitNOFILE, ulimit -n)"
)
TAKE_EPOLL = Advice(
    "take another event loop", "take an event loop on epoll, or more processes with fewer connections each"
)
DESCRIPTORS_USED_UP = Symptom(
    "descriptors used up",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, MORE_DESCRIPTORS, RAISE_SERVER_DESCRIPTORS),
    "it has no file descriptor left{limit: of}",
    traits=Traits(cause="its limit of open files"),
)
"""``used`` of ``limit`` open files, of the process that is nearest to its own."""
SELECT_FULL = Symptom(
    "select() full",
    Meaning(Bearing.LIMITS, OF_THE_SERVED, FEWER_CONNECTIONS, TAKE_EPOLL),
    "it waits for connections with select(), which knows {select_most} descriptors, and "
    "{connections:n connection} were open",
    traits=Traits(cause="select()"),
)
"""``connections`` at its address at most; select(2) knows 1,024 descriptors."""


_NONE_LEFT = re.compile(r"(?i)too many open files|\bEMFILE\b|no file descriptors available")
# Of inotify, which has limits of its own, and of which servers only reload their code.
_OF_WATCHES = re.compile(r"(?i)watch|inotify")
_OF_SELECT = re.compile(r"(?i)file ?descriptor out of range in select|\bFD_SETSIZE\b")
# The last ones are those that a server keeps for itself.
_NEARLY_ALL, _NEARLY_SAID, _REFUTED = 0.95, 0.85, 0.5
_MOST_OF_SELECT = 1024


def descriptors(evidence: Evidence) -> list[Finding]:
    """Return a finding when its log says so, or a process had used 95 % of its own limit.

    Certain: both; where its log says so 85 % are enough, for a look misses the fullest moment. Likely: the
    log, and clients went without. Possible: the log alone, or against what was counted; it has lines from
    before the window too.
    """
    log, counters = evidence.trial.log.text, evidence.trial.counters
    if _OF_SELECT.search(log):
        return [_select(evidence)]
    used, limit = counters.get("descriptors.used"), counters.get("descriptors.limit")
    said = any(_NONE_LEFT.search(line) and not _OF_WATCHES.search(line) for line in log.splitlines())
    share = used / limit if used is not None and limit else None
    if not (said or (share is not None and share >= _NEARLY_ALL)):
        return []
    known = {} if used is None or limit is None else {"used": used, "limit": limit}
    return [Finding(DESCRIPTORS_USED_UP, _sure(evidence, share) if said else Confidence.LIKELY, known)]


def _sure(evidence: Evidence, share: float | None) -> Confidence:
    """Return how sure it is that the log speaks of the window; ``share``: of the descriptors used."""
    if share is not None and share >= _NEARLY_SAID:
        return Confidence.CERTAIN
    refuted = share is not None and share < _REFUTED
    return Confidence.LIKELY if went_without(evidence.trial) and not refuted else Confidence.POSSIBLE


def _select(evidence: Evidence) -> Finding:
    counts = [one.gauges.get("established.server", 0) for one in evidence.samples]
    signs = max(counts, default=0) >= _NEARLY_SAID * _MOST_OF_SELECT, went_without(evidence.trial)
    sure = {0: Confidence.POSSIBLE, 1: Confidence.LIKELY, 2: Confidence.CERTAIN}[sum(signs)]
    return Finding(SELECT_FULL, sure, {"connections": max(counts, default=0)})

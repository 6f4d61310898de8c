"""D06: sockets that earlier trials left on the host's network keep the ports that this one needs.

Who closes a connection first keeps its port for 60 s (TIME_WAIT), towards the same peer: a database that
outlives the trial, for example. A network of the trial's own begins without any. Where all goes well such
sockets are no finding: over loopback tcp_tw_reuse lets them be used again. *Source*: RFC 9293, section 3.6.1;
kernel, Documentation/networking/ip-sysctl.rst, tcp_tw_reuse.
"""

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Experiment, Meaning, Symptom, Traits
from prony.diagnosis.shared import OF_ERRORS
from prony.figures.generator import (
    NEARLY_ALL_PORTS,
    generator_lacked_ports,
    own_waiting,
    server_lacked_ports,
)

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

"""What several rules advise, mean, or would be confirmed by. What only one has stands beside it."""

from prony.diagnosis.kinds import Advice, Consequence, Experiment
from prony.diagnosis.knobs import Turned

FULL_CPU = 0.93
"""Of the CPUs' time: full. Saturated servers here use 0.98 to 1.00 of it by the count of their control
groups, and 0.93 where it is sampled in ticks.
"""

OF_BOTH = Consequence(
    "of server and disturbance", "throughput and latency describe the server and the disturbance together"
)

CONNECT_WAITS = Consequence("waits to connect", "the tail of the latency is waiting to connect")

OF_THE_SERVED = Consequence(
    "of the served only", "throughput and latency describe only the connections that were served"
)

OF_THE_LIMIT = Consequence(
    "of the limit", "throughput is that of the limit, and the tail of the latency waits for it"
)

CHANGING = Consequence("changing", "its figures change while it is measured")

OF_THE_WAITING = Consequence(
    "of what it waits for", "throughput is that of what its workers wait for, not of its code"
)

OF_ERRORS = Consequence("of errors too", "a part of the figures is of errors, not of the work")

QUIET_MACHINE = Experiment("a quiet machine", "measure where nothing else runs; the figures improve")

MORE_MEMORY = Experiment("more memory", "measure without the memory limit; no process is killed or waits")

LONGER_QUEUE = Experiment(
    "a longer queue", "measure with twice the queue, or fewer connections; waits of seconds end"
)

FEWER_CONNECTIONS = Experiment(
    "fewer connections", "measure with as many connections as it serves; all are answered"
)

LONGER_WARM_UP = Experiment("a longer warm-up", "measure with a longer warm-up; the figures no longer change")

KEPT_OPEN = Experiment(
    "connections that stay open", "measure with keep-alive on both sides; CPU for a request falls"
)

RIGHT_REPLIES = Experiment(
    "replies as they should be", "measure a page that answers as expected; the figures change"
)

NO_LOCK = Experiment("without the lock", "measure a page without it, or more processes; throughput rises")

RAISE_POOL = Advice(
    "raise the pool of connections",
    "raise what lets so few through, a pool of connections or a semaphore, or hold it for less",
)

RAISE_MEMORY = Advice("raise the memory limit", "raise the memory limit, or run fewer workers")

KEEP_ALIVE = Advice(
    "turn keep-alive on", "turn its keep-alive on, where it has one", turned=(Turned.KEEP_ALIVE,)
)

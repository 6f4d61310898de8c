"""Whether a server answered only some of its connections, and nothing on the others.

Latency and error counts do not show it: they describe only the served connections.
"""

from dataclasses import dataclass

from prony.model.recording import Answered, Recording

# Beyond this share of connections without a single reply, figures describe only those that the server chose
# to serve.
_MOST_WITHOUT_REPLY = 0.1

# A fair server serves its connections in rounds: their counts of replies differ by one, or by two where the
# window cuts two rounds. Below this, connections without a reply only mean that the window was short.
_LEAST_MOST_REPLIES = 3


@dataclass(frozen=True, slots=True)
class Starvation:
    """How many connections there were, and how many of them got a reply in the window."""

    connections: int
    served: int


def starvation(recording: Recording | None) -> Starvation | None:
    """Return how few connections of a closed loop were answered; null if enough were, or in an open loop.

    *Definition*: more than a tenth of the connections got no reply in the window, while some other got
    three or more.
    *Assumptions*: a slow but fair server, whose window is shorter than one round of its connections, gives
    none of them three.
    *Source*: cheroot issue 91: ten threads kept ten connections, and only those were seen.
    """
    if recording is None or recording.is_open or recording.connections.answered is None:
        return None
    return starved_of(recording.connections.answered)


def starved_of(answered: Answered) -> Starvation | None:
    """Return the same from the spread of a closed loop's replies over its connections.

    >>> starved_of(Answered(connections=100, without_reply=90, min=0, max=40))
    Starvation(connections=100, served=10)
    """
    connections, without = answered.connections, answered.without_reply
    starved = are_many(without, connections) and answered.max >= _LEAST_MOST_REPLIES
    return Starvation(connections, connections - without) if starved else None


def are_many(without_reply: int, connections: int) -> bool:
    """Return whether so many connections without a reply are more than a tenth of all.

    >>> are_many(11, 100), are_many(10, 100)
    (True, False)
    """
    return without_reply > _MOST_WITHOUT_REPLY * connections

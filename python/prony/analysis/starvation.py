"""Whether a server answered only some of its connections, and nothing on the others.

Latency and error counts do not show it: they are of those that were served.
"""

from dataclasses import dataclass

from prony.model import Json

__all__ = ["Starvation", "starvation"]

# Beyond this share of connections without a single reply, figures are of those that the server chose to
# serve.
_MOST_WITHOUT_REPLY = 0.1


@dataclass(frozen=True, slots=True)
class Starvation:
    """How many connections there were, and how many of them got a reply in the window."""

    connections: int
    served: int


def starvation(recording: Json | None) -> Starvation | None:
    """Return how few connections of a closed loop were answered; null when enough were, or the loop was open.

    *Definition*: more than a tenth of the connections got no reply in the window.
    *Source*: cheroot issue 91: ten threads kept ten connections, and only those were seen.

    >>> starvation({"loop": "closed", "connections": {"answered": {"connections": 100, "without_reply": 90}}})
    Starvation(connections=100, served=10)
    """
    if recording is None or recording["loop"] != "closed":
        return None
    answered = recording["connections"]["answered"]
    connections, without = answered["connections"], answered["without_reply"]
    return (
        None
        if without <= _MOST_WITHOUT_REPLY * connections
        else Starvation(connections, connections - without)
    )

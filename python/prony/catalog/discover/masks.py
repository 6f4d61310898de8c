"""Whether bodies are alike but for what varies by itself: a counter, a time, a token. Pure.

>>> varies = template(b"hit 1 at 10:01", b"hit 2 at 10:07")
>>> is_alike(varies, b"hit 33 at 10:30"), is_alike(varies, b"miss 3 at 10:30")
(True, False)
"""

import re
from difflib import SequenceMatcher

# What varies is a whole word or number; what is between them is layout.
_TOKEN = re.compile(rb"\w+|\W")
# Enough to see another page; comparing more would take seconds.
_MOST_BYTES = 32_768

Template = tuple[bytes, ...]
"""The parts that stay, in their order; between them anything may be."""


def template(one: bytes, other: bytes) -> Template:
    """Return what two replies to the same request have in common."""
    if one == other:
        return (one[:_MOST_BYTES],)
    left, right = (_TOKEN.findall(body[:_MOST_BYTES]) for body in (one, other))
    blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
    return tuple(b"".join(left[block.a : block.a + block.size]) for block in blocks if block.size)


def is_alike(varies: Template, body: bytes) -> bool:
    """Return whether a body has all that stays, in its order."""
    at = 0
    begin = body[:_MOST_BYTES]
    for part in varies:
        found = begin.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True

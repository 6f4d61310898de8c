"""External load generators in the role of an engine: one small file for each, one runner for all.

>>> sorted(TOOLS)[:3]
['ab', 'fortio', 'h2load']
"""

from collections.abc import Mapping

from prony.engine.external import ab, fortio, h2load, hey, k6, oha, vegeta, weighttp, wrk
from prony.engine.external.tool import Tool

TOOLS: Mapping[str, Tool] = {
    "wrk": wrk.TOOL,
    "ab": ab.TOOL,
    "h2load": h2load.TOOL,
    "hey": hey.TOOL,
    "fortio": fortio.TOOL,
    "k6": k6.TOOL,
    "oha": oha.TOOL,
    "vegeta": vegeta.TOOL,
    "weighttp": weighttp.TOOL,
}

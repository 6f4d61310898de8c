"""External load generators in the role of an engine: one small file for each, one runner for all.

>>> sorted(TOOLS)[:3]
['ab', 'fortio', 'h2load']
"""

from collections.abc import Mapping

from prony.engine.external import ab, fortio, h2load, hey, k6, oha, vegeta, weighttp, wrk
from prony.engine.external.tool import Tool

_TOOLS = (
    *(wrk.TOOL, ab.TOOL, h2load.TOOL, hey.TOOL, fortio.TOOL),
    *(k6.TOOL, oha.TOOL, vegeta.TOOL, weighttp.TOOL),
)
TOOLS: Mapping[str, Tool] = {one.name: one for one in _TOOLS}

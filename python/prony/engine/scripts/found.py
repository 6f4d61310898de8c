"""The interpreter of a load script, and its version.

Must not know what the scripts do.

>>> find_script.__name__
'find_script'
"""

from prony.engine.external.engine import InstalledTool
from prony.engine.external.tool import Tool
from prony.engine.scripts.environment import environment


def find_script(tool: Tool) -> InstalledTool:
    """Return the interpreter of the scripts' environment, with the version of the package that it uses.

    *Errors*: EngineError when the environment is unavailable.
    """
    found = environment()
    package = "aiohttp" if "asyncio" in tool.name else "requests"
    return InstalledTool(str(found.python), f"{package} {found.packages.get(package)} on {found.interpreter}")

"""The environment of the load scripts, locked like those of the servers, and its interpreter.

>>> entry().name
'python-scripts'
"""

from functools import cache

from prony.catalog.install.environment import Environment, EnvironmentRequest, Unavailable
from prony.catalog.install.prepare import prepare
from prony.catalog.schema.entry import ProcessEntry
from prony.catalog.schema.loader import load_generator
from prony.core.errors import EngineError
from prony.core.users import RunAs, resolve_user
from prony.engine.external.engine import InstalledTool
from prony.engine.external.tool import Tool


def entry() -> ProcessEntry:
    """Return what the scripts need, as an entry of the catalogue."""
    return load_generator("python-scripts")


def environment() -> Environment:
    """Return the scripts' environment; build it if it is not in the cache. Called once in a run of Prony.

    *Errors*: EngineError when it is unavailable; HostError as `prony.catalog.install.environment.prepare`.
    """
    return _prepared(resolve_user())


@cache
def _prepared(user: RunAs) -> Environment:
    request = EnvironmentRequest("python-scripts", entry())
    found = prepare((request,), user, lambda _progress: None)[request.key]
    if isinstance(found, Unavailable):
        raise EngineError(f"the Python load scripts cannot be installed: {found.reason}")
    return found


def find_script(tool: Tool) -> InstalledTool:
    """Return the interpreter of the scripts' environment, with the version of the package that it uses.

    *Errors*: EngineError when the environment is unavailable.
    """
    found = environment()
    package = "aiohttp" if "asyncio" in tool.name else "requests"
    return InstalledTool(str(found.python), f"{package} {found.packages.get(package)} on {found.interpreter}")

"""Load generators: one role, several kinds.

Must not know trials or archives.

>>> sorted(ENGINES)
['prony']
"""

from collections.abc import Callable, Mapping

from prony.engine.base import Engine
from prony.errors import UsageError
from prony.model import EngineChoice

__all__ = ["ENGINES", "Engine", "open_engine"]


def _prony(choice: EngineChoice) -> Engine:
    from prony.engine.process import ProcessEngine

    return ProcessEngine(choice)


ENGINES: Mapping[str, Callable[[EngineChoice], Engine]] = {
    "prony": _prony,
}


def open_engine(choice: EngineChoice) -> Engine:
    """Return the generator of a study's trials.

    *Errors*: UsageError for an unknown name.
    """
    if choice.name not in ENGINES:
        raise UsageError(f"there is no engine `{choice.name}`", hint=f"one of: {', '.join(sorted(ENGINES))}")
    return ENGINES[choice.name](choice)

"""Load generators: one role, several kinds.

Must not know trials or archives.

>>> sorted(ENGINES)[:4]
['ab', 'fortio', 'h2load', 'hey']
"""

from collections.abc import Callable, Mapping

from prony.engine.base import Engine
from prony.engine.external import TOOLS
from prony.engine.external.tool import refusal
from prony.errors import UsageError
from prony.model import Address, EngineChoice, Workload

__all__ = ["ENGINES", "Engine", "cannot_make", "open_engine"]


def _prony(choice: EngineChoice) -> Engine:
    from prony.engine.process import ProcessEngine

    return ProcessEngine(choice)


def _external(choice: EngineChoice) -> Engine:
    from prony.engine.external.engine import ExternalEngine

    return ExternalEngine(choice, TOOLS[choice.name])


ENGINES: Mapping[str, Callable[[EngineChoice], Engine]] = {
    "prony": _prony,
    "wrk": _external,
    "ab": _external,
    "h2load": _external,
    "hey": _external,
    "fortio": _external,
    "k6": _external,
    "oha": _external,
    "vegeta": _external,
    "weighttp": _external,
}


def open_engine(choice: EngineChoice) -> Engine:
    """Return the generator of a study's trials.

    *Errors*: UsageError for an unknown name.
    """
    if choice.name not in ENGINES:
        raise UsageError(f"there is no engine `{choice.name}`", hint=f"one of: {', '.join(sorted(ENGINES))}")
    return ENGINES[choice.name](choice)


def cannot_make(choice: EngineChoice, workload: Workload, address: Address) -> str | None:
    """Return why a generator cannot make a load at an address, in words; null: it can."""
    return refusal(TOOLS[choice.name], workload, address) if choice.name in TOOLS else None

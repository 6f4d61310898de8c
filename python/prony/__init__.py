"""Prony: a dynamometer for web application servers.

``prony.open`` reads an archive, ``prony.load`` loads a URL; both are imported at first use, so that
``import prony`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.data import Library, MeasuredStudy, TimesOf, histogram, load, open

__all__ = ["Library", "MeasuredStudy", "TimesOf", "histogram", "load", "open"]


def __getattr__(name: str) -> object:
    """Return what this package offers, from the module that has it."""
    if name not in __all__:
        raise AttributeError(f"module `prony` has no attribute `{name}`")
    return getattr(import_module("prony.data"), name)

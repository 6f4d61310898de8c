"""What the files of rules declare."""

import importlib
import pkgutil

import prony.diagnosis


def declared(kind):
    """Return all values of a class that the modules of `prony.diagnosis` have, each once."""
    names = (one.name for one in pkgutil.iter_modules(prony.diagnosis.__path__))
    modules = [importlib.import_module(f"prony.diagnosis.{name}") for name in names]
    return {value for one in modules for value in vars(one).values() if isinstance(value, kind)}

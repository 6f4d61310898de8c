"""Scripts as modules: they are no packages, and some have no ending."""

import sys
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"


def load(name):
    """Return a script as a module, without leaving its bytecode beside it."""
    loader = SourceFileLoader(name.replace("-", "_"), str(SCRIPTS / name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    sys.path.insert(0, str(SCRIPTS))
    try:
        exec(loader.get_code(loader.name), module.__dict__)
    finally:
        sys.path.pop(0)
    return module


def load_prerequisites(name):
    """Return a module of scripts/prerequisites, whose modules import each other by their bare names."""
    sys.path.insert(0, str(SCRIPTS / "prerequisites"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)

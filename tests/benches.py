"""Commands of `bench/` as modules, for the tests that hold something to what they make."""

import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

BENCH = Path(__file__).parent.parent / "bench"


@cache
def bench(name):
    """Return the command of that name."""
    loader = SourceFileLoader(f"bench_{name}", str(BENCH / name))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    # Dataclasses look for their module there.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module

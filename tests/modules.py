"""The package's modules as data: what each imports and offers, for tests of the house's rules."""

import ast
from functools import cache
from pathlib import Path

import prony

ROOT = Path(prony.__file__).parent


@cache
def modules():
    """Return the package's modules by name, without `prony.`; what other interpreters run is data."""
    data = (ROOT / "catalog" / "apps", ROOT / "engine" / "scripts" / "python-scripts")
    files = [file for file in ROOT.rglob("*.py") if not any(file.is_relative_to(folder) for folder in data)]
    names = {file: file.relative_to(ROOT).with_suffix("").parts for file in files}
    found = {".".join(name[:-1] if name[-1] == "__init__" else name): file for file, name in names.items()}
    return {name: file for name, file in sorted(found.items()) if name}


@cache
def tree(name):
    return ast.parse(modules()[name].read_text())


def imports(name):
    """Yield module and name of all that a module imports, wherever in it."""
    for node in ast.walk(tree(name)):
        match node:
            case ast.Import(names):
                yield from ((alias.name, None) for alias in names)
            case ast.ImportFrom(module, names):
                assert node.level == 0, f"{name} imports by a relative name"
                yield from ((module, alias.name) for alias in names)


@cache
def own_imports(name):
    """Return what a module imports of this package: module (without `prony.`) and name."""
    return tuple(_own_imports(name))


def _own_imports(name):
    for module, imported in imports(name):
        if module == "prony" and imported:
            yield (imported, None) if imported in modules() or imported == "_engine" else ("", imported)
        elif module.startswith("prony."):
            full = f"{module}.{imported}".removeprefix("prony.")
            yield (full, None) if full in modules() else (module.removeprefix("prony."), imported)


def listed(name):
    """Return the names in a package's list of what it offers; null without one."""
    for node in tree(name).body:
        match node:
            case ast.Assign(targets=[ast.Name("__all__")], value=value):
                return ast.literal_eval(value)
    return None


@cache
def offered(name):
    """Return the names that others may take from a module: its own public ones, or those that it lists."""
    names = listed(name)
    return set(_defined(name) if names is None else names)


def _defined(name):
    for node in tree(name).body:
        match node:
            case ast.FunctionDef(name=own) | ast.AsyncFunctionDef(name=own) | ast.ClassDef(name=own):
                found = [own]
            case ast.Assign(targets=targets):
                found = [
                    one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)
                ]
            case ast.AnnAssign(target=ast.Name(own)):
                found = [own]
            case _:
                found = []
        yield from (own for own in found if not own.startswith("_"))

"""One name, one thing: what the package's modules offer has names of its own, and somebody who uses it."""

import ast
import re
from collections import defaultdict
from functools import cache

from modules import modules, tree

# Names that several modules have on purpose, each with its reason.
SHARED = {
    "main": "the entry point of a process",
    "order": "each external tool's command line, as `Tool` wants it",
    "parse": "each external tool's output, as `Tool` wants it",
    "compare": "two cells; the command is called as what it does",
    "load": "the command, and the same for programs",
}


@cache
def definitions():
    """Return the modules that define each public class and function."""
    found = defaultdict(list)
    for module in modules():
        for node in tree(module).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return found


def doubles():
    return {name: where for name, where in definitions().items() if len(where) > 1}


def test_no_two_things_have_one_name():
    assert {name: where for name, where in doubles().items() if name not in SHARED} == {}


def test_every_name_that_is_shared_on_purpose_is_shared():
    assert SHARED.keys() - doubles().keys() == set()


def is_passive(statement):
    """Return whether a statement only lists names, or is a docstring: that uses nothing."""
    match statement:
        case ast.Assign(targets=[ast.Name("__all__")]) | ast.Expr(ast.Constant(str())):
            return True
    return False


def spoken(module):
    """Yield the names that a module uses, also in texts such as `"Plan | None"` and `"faces.csv:write"`."""
    passive = {id(inner) for node in ast.walk(tree(module)) if is_passive(node) for inner in ast.walk(node)}
    for node in ast.walk(tree(module)):
        match node:
            case _ if id(node) in passive:
                continue
            case ast.Name(name) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.name for alias in names if alias.asname)
            case ast.Constant(str(text)) if re.fullmatch(r"[\w.:|\[\], ]+", text):
                yield from re.findall(r"\w+", text)


def test_nothing_is_there_for_tests_alone():
    used = {name for module in modules() for name in spoken(module)}
    assert {name: where for name, where in definitions().items() if name not in used} == {}

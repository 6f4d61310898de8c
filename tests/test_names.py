"""One name, one thing: what the package's modules offer has names of its own, and somebody who uses it."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import lab as lab_of_faults
from modules import modules, tree

# Names that several modules have on purpose, each with its reason.
SHARED = {
    "main": "the entry point of a process",
    "order": "each external tool's command line, as `Tool` wants it",
    "parse": "each external tool's output, as `Tool` wants it",
    "compare": "two cells; the command is called as what it does",
    "load": "the command, and the same for programs",
}
# What nothing here calls, but a library does.
CALLED_BY_LIBRARIES = {
    "cli.main.PanelCommand.format_options",
    "plan.document.AppDocument._names_one_app",
    "plan.document.CrossCheckDocument._checks_something",
    "plan.document.WorkloadDocument._kept_connections_are_kept",
    "plan.document.WorkloadDocument._loop_has_its_fields",
    "plan.document.WorkloadDocument._paths_are_a_mix",
    "plan.document.WorkloadDocument._requests_are_of_one_file",
    "plan.document.WorkloadDocument._one_generator_sends_it",
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


def spoken(text):
    """Yield the names that a module's text uses, also in strings such as `"Plan | None"`."""
    passive = {id(inner) for node in ast.walk(text) if is_passive(node) for inner in ast.walk(node)}
    for node in ast.walk(text):
        match node:
            case _ if id(node) in passive:
                continue
            case ast.Name(name) | ast.Attribute(attr=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.name for alias in names if alias.asname)
            case ast.Constant(str(text)) if re.fullmatch(r"[\w.:|\[\], ]+", text):
                yield from re.findall(r"\w+", text)


@cache
def used():
    """Return how often each name is used, in the package and in the lab of planted faults."""
    lab = (ast.parse(file.read_text()) for file in Path(lab_of_faults.__file__).parent.glob("*.py"))
    return Counter(name for text in (*map(tree, modules()), *lab) for name in spoken(text))


def test_no_function_or_class_is_there_for_tests_alone():
    assert {name: where for name, where in definitions().items() if not used()[name]} == {}


def members():
    """Yield module, class and name of each method, property and field."""
    for module in modules():
        for one in (node for node in tree(module).body if isinstance(node, ast.ClassDef)):
            for node in one.body:
                match node:
                    case ast.FunctionDef(decorator_list=[first, *_]) if "shown" in ast.unparse(first):
                        continue  # JSON has it
                    case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(name)):
                        yield module, one.name, name


def test_no_member_of_a_class_is_there_for_tests_alone():
    found = {
        f"{module}.{owner}.{name}"
        for module, owner, name in members()
        # A field's own line is no use of it.
        if not used()[name] and not name.startswith("__")
    }
    assert found == CALLED_BY_LIBRARIES


def globals_of(module):
    """Yield each name that a module gives a value, and each private function and class."""
    for node in tree(module).body:
        match node:
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if name.startswith("_"):
                yield name


def read_in(module):
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load)
    }


def test_no_value_is_there_for_tests_alone():
    read = {name for module in modules() for name in read_in(module)}
    found = {
        f"{module}.{name}"
        for module in modules()
        for name in globals_of(module)
        if name not in (read_in(module) if name.startswith("_") else read) and name != "__all__"
    }
    assert found == set()

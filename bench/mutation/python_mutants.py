"""Lists the mutants of Python sources, as JSON lines. Runs in an environment that has mutmut, not Prony.

    python python_mutants.py ROOT FILE ... < NUMBERS

Without NUMBERS on the standard input it prints how many mutants each file has; with a JSON object of file and
numbers it prints these mutants: the whole mutated source of each, and its difference. The operators are
mutmut's. Left out are annotations, decorators, docstrings, `__all__`, the text of sentences (a string with a
space in it) and, outside of functions, whole assignments (an import that fails says nothing about a test).
"""

import ast
import difflib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import libcst
from mutmut.mutation.mutators import mutation_operators

SKIPPED = (libcst.Annotation, libcst.Decorator, libcst.Import, libcst.ImportFrom, libcst.TypeAlias)


def main() -> None:
    """Print counts, or the mutants that were asked for."""
    root, files = Path(sys.argv[1]), sys.argv[2:]
    wanted = json.loads(sys.stdin.read() or "{}")
    for file in files:
        source = (root / file).read_text()
        sites = Sites.of(source)
        if not wanted:
            print(json.dumps({"file": file, "mutants": len(sites.changes)}))
        for number in wanted.get(file, ()):
            print(json.dumps(mutant(file, source, sites, number)))


class Sites(libcst.CSTVisitor):
    """Walks a module and keeps each change that an operator proposes, in the order of the source."""

    def __init__(self, module: libcst.Module) -> None:
        self.module = module
        self.functions: list[str] = []
        self.changes: list[tuple[str, libcst.CSTNode, libcst.CSTNode]] = []

    @classmethod
    def of(cls, source: str) -> "Sites":
        """Return the sites of a source."""
        module = libcst.parse_module(source)
        sites = cls(module)
        module.visit(sites)
        return sites

    def on_visit(self, node: libcst.CSTNode) -> bool:
        if isinstance(node, SKIPPED) or is_apart(node):
            return False
        if isinstance(node, libcst.FunctionDef | libcst.ClassDef):
            self.functions.append(node.name.value)
        for kind, operator in mutation_operators:
            if isinstance(node, kind) and self.counts(node):
                self.changes += ((".".join(self.functions), node, changed) for changed in operator(node))
        return True

    def on_leave(self, original_node: libcst.CSTNode) -> None:
        if isinstance(original_node, libcst.FunctionDef | libcst.ClassDef):
            self.functions.pop()

    def counts(self, node: libcst.CSTNode) -> bool:
        """Whether a change of the node says something about a test."""
        return bool(self.functions) or not isinstance(node, libcst.Assign | libcst.AnnAssign | libcst.Call)


def is_apart(node: libcst.CSTNode) -> bool:
    """Whether the node is a docstring, `__all__`, or a sentence."""
    match node:
        case libcst.Expr(value=libcst.SimpleString() | libcst.ConcatenatedString()):
            return True
        case libcst.Assign(targets=[libcst.AssignTarget(target=libcst.Name(value="__all__"))]):
            return True
        case libcst.SimpleString():
            return " " in node.value
    return False


def mutant(file: str, source: str, sites: Sites, number: int) -> dict[str, object]:
    """Return one mutant; its source is null where the change is none, or no Python."""
    function, original, changed = sites.changes[number]
    code = sites.module.deep_replace(original, changed).code
    return {
        "file": file,
        "number": number,
        "function": function,
        "source": code if is_python(code) and code != source else None,
        "diff": "\n".join(difference(source, code)),
    }


def is_python(code: str) -> bool:
    """Whether the text compiles."""
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def difference(before: str, after: str) -> Iterator[str]:
    """Yield the changed lines alone: they name a mutant, whatever line it stands in."""
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""):
        if line[:3] not in {"---", "+++"} and not line.startswith("@@"):
            yield line


if __name__ == "__main__":
    main()

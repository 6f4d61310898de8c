"""The Python modules of an app's folder, found by name as Python's import finds them.

Pure. Must not know what they mean.

>>> sources = Sources({"src/shop.py": "app = 1"}.get)
>>> found = sources.module("shop")
>>> found.path, found.root
('src/shop.py', 'src')
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Read = Callable[[str], str | None]
"""The text of a file by its path in the app's folder; empty for a folder, null for what is not there."""

# The app's folder itself, and the layout with sources in a folder of their own. *Source*: Python Packaging
# User Guide, src layout vs flat layout.
_ROOTS = ("", "src")


@dataclass(frozen=True, slots=True)
class Module:
    """A module's file. ``root``: the folder at which imports begin, in the app's; ``tree`` null: Python
    cannot parse it.
    """

    name: str
    path: str
    root: str
    tree: ast.Module | None

    @property
    def body(self) -> list[ast.stmt]:
        """The module's statements; none when it cannot be parsed."""
        return self.tree.body if self.tree else []


@dataclass(frozen=True, slots=True)
class Sources:
    """The modules that ``read`` finds, below the app's folder or its ``src``."""

    read: Read

    def module(self, name: str) -> Module | None:
        """Return the module of a dotted name; null when this folder does not have it."""
        base = name.replace(".", "/")
        for root in _ROOTS:
            for end in (".py", "/__init__.py"):
                path = f"{root}/{base}{end}" if root else f"{base}{end}"
                text = self.read(path)
                if text is not None:
                    return Module(name, path, root, _parsed(text))
        return None

    def has(self, name: str) -> bool:
        """Return whether a top-level name belongs to the folder: a module, or a folder with modules."""
        return self.module(name) is not None or any(
            self.read(f"{root}/{name}" if root else name) is not None for root in _ROOTS
        )


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The last two: nested deeper than the parser goes.
        return None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the body does, also those in conditions and loops, in order."""
    for statement in body:
        yield statement
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from statements(handler.body)

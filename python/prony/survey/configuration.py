"""What the configuration files of servers say, read and never run. Pure.

>>> python_values("workers = multiprocessing.cpu_count() * 2 + 1", 2, {})
{'workers': '5'}
"""

import ast
import operator
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# What a configuration file may say and no option of a command takes back.
AS_IT_IS = frozenset(
    {"daemon", "pidfile", "certfile", "keyfile", "user", "group", "accesslog", "errorlog", "chdir"}
)
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def python_values(text: str, cpus: int, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the plain values that a configuration in Python assigns; of one that is computed otherwise an
    empty text. It is read, never run.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known = _Known(cpus, variables, found).value(value)
                found[name] = "" if known is None else str(known)
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """What a value may ask for: the number of CPUs, variables, and names that were assigned before."""

    cpus: int
    variables: Mapping[str, str]
    assigned: Mapping[str, str]

    def value(self, node: ast.expr) -> int | str | None:
        """Return the value of a constant, a sum or product, a number of CPUs, or a variable with a default;
        null: it is computed otherwise.
        """
        match node:
            case ast.Constant(value=str() | int() as value):
                return value
            case ast.Name(id=name):
                return self.assigned.get(name) or None
            case ast.BinOp(left=left, op=op, right=right):
                return self._computed(type(op), [self.value(left), self.value(right)])
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=given):
                return self._called(name, given)
        return None

    def _computed(self, kind: type[ast.operator], pair: list[int | str | None]) -> int | None:
        apply = _OPERATORS.get(kind)
        numbers = [int(one) for one in pair if one is not None and str(one).isdecimal()]
        if apply is None or len(numbers) < 2 or (kind is ast.FloorDiv and not numbers[1]):
            return None
        return apply(*numbers)

    def _called(self, name: str, given: list[ast.expr]) -> int | str | None:
        match name, given:
            case "cpu_count", []:
                return self.cpus
            case (("int" | "str"), [inner]):
                return self.value(inner)
            case (("get" | "getenv"), [ast.Constant(value=str() as variable), *usual]):
                return self.variables.get(variable) or (self.value(usual[0]) if usual else None)
        return None


def toml_values(text: str) -> dict[str, str]:
    """Return the texts and numbers at the top of a file in TOML; none of one that cannot be read."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {name: str(value) for name, value in found.items() if isinstance(value, str | int)}

"""Units convert in `units` alone: no other module says how many nanoseconds a second has."""

import ast
import operator

import pytest

from modules import modules, tree

FACTORS = {
    *(10**6, 10**9, 60 * 10**9, 3600 * 10**9, 86_400 * 10**9, 1e-6, 1e-9),
    *(1024**2, 1024**3),
}
# Digits that are often a mere count, and a factor only next to an operator.
SMALL_FACTORS = {1000, 1024, 1e-3}
# What has the digits of a factor and converts nothing.
COUNTS = {
    "archive.caps": "the most values of JSON in an archive",
    "catalog.schema.entry": "the most times that a file is written with itself",
    "engine.fleet.clocks": "parts in a million",
    "engine.external.hey": "the most results that hey keeps",
    "engine.external.k6": "a rate that takes whole numbers, per 1000 seconds",
    "engine.external.vegeta": "a rate that takes whole numbers, per 1000 seconds",
    "sandbox.linux": "a flag of the kernel's, whose bit is that of a GiB",
    "core.trees": "the most entries of a tree",
    "study.rates": "the highest rate that is searched",
}
OPERATORS = {
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


def value_of(node):
    """Return the number that an expression of literals is; null for anything else."""
    match node:
        case ast.Constant(bool()):
            return None
        case ast.Constant(int() | float() as value):
            return value
        case ast.BinOp(left, operation, right) if type(operation) in OPERATORS:
            numbers = value_of(left), value_of(right)
            return None if None in numbers else OPERATORS[type(operation)](*numbers)
    return None


def conversions(body):
    """Yield line and text of each conversion by a factor that stands there as a number."""
    for node in ast.walk(body):
        match node:
            case ast.BinOp(left, ast.Mult() | ast.Div() | ast.FloorDiv() | ast.Mod(), right):
                found = {value_of(left), value_of(right)} & (SMALL_FACTORS | FACTORS)
            case ast.keyword(arg, value) if arg and arg.endswith("_ns"):
                found = {value_of(value)} & (SMALL_FACTORS | FACTORS)
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), value=value) if (
                name.lower().endswith("_ns")
            ):
                # A length of time, written in the unit of its arithmetic instead of one that people read.
                number = value_of(value)
                found = {number} if number and number >= 10**6 else set()
            case _:
                found = {value_of(node)} & FACTORS
        if found:
            yield node.lineno, ast.unparse(node)


def test_units_convert_in_units_alone():
    found = {name: list(conversions(tree(name))) for name in set(modules()) - {"core.units"} - set(COUNTS)}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_what_is_let_through_as_a_count_still_stands_there(name):
    assert list(conversions(tree(name)))


@pytest.mark.parametrize(
    "text",
    [
        *("x / 1e9", "x * 1_000_000_000", "x // 10**9", "round(x * 1e6)", "x * 1000", "1e-9 * x"),
        *("64 * 1024 * 1024", "512 * 1024**2", "1 << 20", "64 * 1024", "x % 1_000_000", "f(unit_ns=1e9)"),
        *("WAIT_NS = 2_000_000_000", "wait_ns: int = 2_000_000_000", "f(unit_ns=1000)"),
    ],
)
def test_a_factor_is_found_however_it_is_written(text):
    assert list(conversions(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["connections = 1024", "x * 2", "x / 100", "WAIT_NS = 2 * SECOND_NS", "True"]
)
def test_what_converts_nothing_is_let_through(text):
    assert list(conversions(ast.parse(text))) == []

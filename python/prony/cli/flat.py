"""A command whose options are fields of dataclasses: Typer reads one flat signature, people read groups.

A dataclass of options has a ``PANEL``, the heading of its options in the help, and fields annotated like
Typer's parameters. Must not know any option.

>>> from dataclasses import dataclass
>>> from typing import ClassVar
>>> import typer
>>> @dataclass(frozen=True)
... class Load:
...     PANEL: ClassVar[str] = "Load"
...     rate: Annotated[float, typer.Option(help="Requests per second.")] = 1.0
>>> @flattened
... def command(name: str, load: Load) -> int:
...     return int(load.rate)
>>> list(inspect.signature(command).parameters), command(name="x", rate=2.0)
(['name', 'rate'], 2)
"""

import inspect
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, get_args, get_origin, get_type_hints

from typer.models import ParameterInfo


def flattened(command: Callable[..., int]) -> Callable[..., int]:
    """Return ``command`` with each dataclass of options replaced by its fields.

    Names of fields must be unique over all dataclasses of a command.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {
        name: hints[name] for name in inspect.signature(command).parameters if is_dataclass(hints[name])
    }
    parameters = [
        one
        for given in inspect.signature(command).parameters.values()
        for one in _flat(given.replace(annotation=hints[given.name]))
    ]

    @wraps(command)
    def flat(**values: object) -> int:
        built = {
            name: group(**{one.name: values.pop(one.name) for one in fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **built)

    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {one.name: one.annotation for one in parameters}
    return flat


def _flat(parameter: Parameter) -> Iterator[Parameter]:
    group = parameter.annotation
    if not (isinstance(group, type) and is_dataclass(group)):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        annotation = _in_panel(hints[field.name], vars(group)["PANEL"])
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=annotation)


def _default(field: "Field[object]") -> object:
    return Parameter.empty if field.default is MISSING else field.default


def _in_panel(annotation: object, panel: str) -> object:
    """Return an annotated type whose option is shown under the heading ``panel``."""
    if get_origin(annotation) is not Annotated:
        raise TypeError(f"expected `Annotated[..., typer.Option(...)]`, not `{annotation}`")
    kind, info = get_args(annotation)
    if not isinstance(info, ParameterInfo):
        raise TypeError(f"expected an option of Typer's, not `{info!r}`")
    placed = copy(info)
    placed.rich_help_panel = panel
    return Annotated[kind, placed]

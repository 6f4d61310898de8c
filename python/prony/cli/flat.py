"""A command whose options are fields of dataclasses: Typer reads one flat signature, people read groups.

A dataclass of options has fields made by `option`, and may have a ``PANEL``, the heading of its options in
the help.

>>> from dataclasses import dataclass
>>> from typing import ClassVar
>>> @dataclass(frozen=True)
... class Load:
...     PANEL: ClassVar[str] = "Load"
...     rate: float = option(1.0, "Requests per second.")
>>> @flattened
... def command(name: str, load: Load) -> int:
...     return int(load.rate)
>>> list(inspect.signature(command).parameters), command(name="x", rate=2.0)
(['name', 'rate'], 2)
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import field, fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

_OPTION = "option"
_T = TypeVar("_T")
_R = TypeVar("_R")


def option(default: _T, words: str, *names: str, **more: Any) -> _T:
    """Return a field of a dataclass of options. ``words``: its help; ``names``: as it is typed, where that is
    not the field's own name; ``more``: what else Typer's `Option` takes.
    """
    return field(default=default, metadata={_OPTION: (names, {"help": words, **more})})


def flattened(command: Callable[..., _R]) -> Callable[..., _R]:
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
    def flat(**values: object) -> _R:
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
    hints, panel = get_type_hints(group), vars(group).get("PANEL")
    for one in fields(group):
        if _OPTION not in one.metadata:
            raise TypeError(f"`{group.__name__}.{one.name}`: expected `option(default, words)`")
        names, more = one.metadata[_OPTION]
        shown = typer.Option(*names, rich_help_panel=panel, **more)
        kind = {"default": one.default, "annotation": Annotated[hints[one.name], shown]}
        yield Parameter(one.name, Parameter.KEYWORD_ONLY, **kind)

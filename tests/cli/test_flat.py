"""Options are declared once, in groups, and read flat: names, defaults and headings are the groups'."""

import inspect
from dataclasses import dataclass
from typing import ClassVar

import pytest

from prony.cli.flat import flattened, option


@dataclass(frozen=True)
class Pace:
    PANEL: ClassVar[str] = "Load"

    rate: float = option(1.0, "Requests per second.")
    connections: int = option(10, "Connections.", "-c")


@dataclass(frozen=True)
class Output:
    PANEL: ClassVar[str] = "Output"

    out: str | None = option(None, "A file.")


@dataclass(frozen=True)
class Bare:
    PANEL: ClassVar[str] = "Bare"

    rate: float = 1.0


def command(name: str, pace: Pace, output: Output) -> int:
    return (name, pace, output)


def test_a_command_has_the_fields_of_its_groups_as_parameters():
    parameters = inspect.signature(flattened(command)).parameters
    assert list(parameters) == ["name", "rate", "connections", "out"]
    assert parameters["connections"].default == 10


def test_each_group_is_built_of_its_own_values():
    called = flattened(command)(name="x", rate=2.0, connections=3, out="y")
    assert called == ("x", Pace(2.0, 3), Output("y"))


def test_options_stand_under_the_heading_of_their_group():
    annotation = inspect.signature(flattened(command)).parameters["out"].annotation
    (shown,) = annotation.__metadata__
    assert (shown.rich_help_panel, shown.help) == ("Output", "A file.")


def test_a_field_without_an_option_is_refused():
    def bare(group: Bare) -> int:
        return 0

    with pytest.raises(TypeError, match=r"`Bare\.rate`: expected `option"):
        flattened(bare)


def test_two_groups_with_one_name_are_refused():
    def twice(one: Pace, other: Pace) -> int:
        return 0

    with pytest.raises(ValueError, match="duplicate parameter name"):
        flattened(twice)

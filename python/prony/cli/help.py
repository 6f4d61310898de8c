"""The help of a command, with its options under the headings of their panels, and the terms that it uses.

In plain text, which looks the same on any terminal, in a pipe and in the docs. An option that takes one value
is refused when it is typed twice. Must not know any option.
"""

from collections import Counter
from typing import TYPE_CHECKING

from typer.core import TyperCommand

from prony.errors import UsageError
from prony.glossary import PLACE, terms_in

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter
    from typer._click.core import Parameter

_ARGUMENTS, _REST = "Arguments", "Options"


class PanelCommand(TyperCommand):
    """A command that groups its options in its help."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse what was typed.

        *Errors*: UsageError for an option that was typed twice: only the last value would count.
        """
        _, _, typed = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(typed).items():
            if times > 1 and _takes_one_value(parameter):
                option = parameter.opts[-1] if parameter.opts[-1].startswith("--") else parameter.opts[0]
                raise UsageError(
                    f"`{option}` is typed {times} times; expected once",
                    hint=f"{ctx.command_path} --help says which options may be repeated",
                )
        return super().parse_args(ctx, args)

    def format_options(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write arguments, then each panel in the order of its first option, then the other options."""
        panels: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(_panel(parameter), []).append(record)
        panels[_REST] = panels.pop(_REST, [])
        for title, records in panels.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the examples, then the terms of the glossary that the help uses."""
        super().format_epilog(ctx, formatter)
        terms = terms_in(formatter.getvalue().partition("\n")[2])
        if terms:
            formatter.write_paragraph()
            formatter.write_text(f"Terms ({PLACE}): {', '.join(terms)}")


def _takes_one_value(parameter: "Parameter") -> bool:
    is_flag = getattr(parameter, "is_flag", False)
    return parameter.param_type_name == "option" and not parameter.multiple and not is_flag


def _panel(parameter: "Parameter") -> str:
    if parameter.param_type_name == "argument":
        return _ARGUMENTS
    return getattr(parameter, "rich_help_panel", None) or _REST

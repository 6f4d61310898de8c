"""The help of a command, with its options under the headings of their panels, and the terms that it uses.

In plain text, which looks the same on any terminal, in a pipe and in the docs. Must not know any option.
"""

from typing import TYPE_CHECKING

from typer.core import TyperCommand

from prony.glossary import PLACE, terms_in

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter
    from typer._click.core import Parameter

__all__ = ["PanelCommand"]

_ARGUMENTS, _REST = "Arguments", "Options"


class PanelCommand(TyperCommand):
    """A command that groups its options in its help."""

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


def _panel(parameter: "Parameter") -> str:
    if parameter.param_type_name == "argument":
        return _ARGUMENTS
    return getattr(parameter, "rich_help_panel", None) or _REST

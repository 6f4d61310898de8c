"""The entry point: the list of commands, and the handling of their errors.

The only place that catches every exception. Standard output is for data, standard error for messages.
"""

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import NoReturn

import typer

from prony.cli.exits import epilog
from prony.cli.help import PanelCommand
from prony.cli.output import guard, to_nowhere
from prony.cli.talk import say, show
from prony.errors import ExitCode, PronyError, UsageError

SUMMARY = (
    "A dynamometer for web application servers: "
    "which server, how many workers, what it carries, and what stops it."
)

# In the order of the help. Each has a file beside this one, with a function of its name, and its `EPILOG`.
COMMANDS = (
    *("run", "load", "fleet", "report", "compare", "why", "servers", "studies", "engines", "doctor", "host"),
    *("selftest", "calibrate", "reference", "env", "clean"),
)


def app_with(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands. Only they are imported, with what they need."""
    app = typer.Typer(
        name="prony",
        help=SUMMARY,
        epilog=epilog(),
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback(invoke_without_command=True)(root)
    for name in names:
        module = import_module(f"prony.cli.{name}")
        app.command(name, cls=PanelCommand, epilog=module.EPILOG)(getattr(module, name))
    return app


def root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Handle the options that belong to no command."""
    if version:
        from prony._engine import __version__

        show(f"prony {__version__}")
    elif context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(ExitCode.USAGE)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    guard()
    sys.exit(_status(sys.argv[1:]))


def _status(arguments: list[str]) -> int:  # noqa: PLR0911 - one way out for each kind of end
    try:
        typed = [word for word in arguments[:1] if word in COMMANDS]
        app = app_with(typed or COMMANDS)
        result = app(args=arguments, prog_name="prony", standalone_mode=False)
        sys.stdout.flush()
        return int(result) if isinstance(result, int) else ExitCode.DONE
    except PronyError as error:
        return _reported(error)
    except typer.Exit as exit_:
        return exit_.exit_code
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except typer.TyperException as error:
        return _reported(_misuse(error))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of the output has gone (`prony ... | head`), and Typer would exit with status 1:
        # end quietly.
        to_nowhere()
        return ExitCode.DONE
    except Exception as error:
        return _fault(error)


def _misuse(error: typer.TyperException) -> UsageError:
    """Return Typer's refusal in the form of Prony's own."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context else "prony --help"
    refused = _refused_value(error)
    message = refused or error.format_message().rstrip(".")
    return UsageError(message[:1].lower() + message[1:], hint)


def _refused_value(error: typer.TyperException) -> str | None:
    """Return option, value and expectation when Typer refused a value; else null."""
    from pydantic import ValidationError

    cause = error.__cause__
    if not isinstance(error, typer.BadParameter) or not isinstance(cause, ValidationError):
        return None
    options = "/".join(error.param.opts) if error.param else ""
    problem = cause.errors()[0]
    match problem:
        case {"type": "greater_than_equal", "ctx": {"ge": least}}:
            expected = f"expected at least {least}"
        case {"type": "less_than_equal", "ctx": {"le": most}}:
            expected = f"expected at most {most}"
        case {"type": "int_parsing" | "int_parsing_size"}:
            expected = "expected a whole number"
        case _:
            said = problem["msg"].removeprefix("Value error, ").rstrip(".")
            expected = said.replace(f"'{problem['input']}' is not one of", "expected one of")
    return f"`{options} {problem['input']}`: {expected}"


def _reported(error: PronyError) -> int:
    say(f"error: {error.message}")
    if error.hint:
        say(f"\nhint: {error.hint}")
    return error.exit_code


def _fault(error: Exception) -> int:
    import traceback

    if os.environ.get("PRONY_TRACE"):
        traceback.print_exc()
    say(f"error: a fault in Prony itself: {type(error).__name__}: {error}")
    say("\nhint: set PRONY_TRACE=1 and repeat the command to see where")
    return ExitCode.INTERNAL

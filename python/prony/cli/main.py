"""The entry point: the list of commands, and the handling of their errors.

The only place that catches every exception. Standard output is for data, standard error for messages.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import NoReturn

import typer

from prony.cli.exits import epilog
from prony.cli.help import PanelCommand
from prony.cli.interrupt import status_of
from prony.cli.output import guard, to_nowhere
from prony.cli.talk import say, show
from prony.errors import ExitCode, PronyError, UsageError

SUMMARY = (
    "A dynamometer for web application servers: "
    "which server, how many workers, what it carries, and what stops it."
)

# In the order of the help, with what it says of each. Each has a file beside this one, with a function of its
# name, and its `EPILOG`.
COMMANDS: Mapping[str, str] = {
    "run": "Measure a study, or your own app on several servers.",
    "load": "Load one address, with an account of every request.",
    "fleet": "Make certificates for generators on several machines.",
    "report": "Report figures, verdicts and the answer of an archive.",
    "compare": "Show what changed between two archives.",
    "why": "Show what limits each subject.",
    "servers": "List the servers that Prony knows, or show some.",
    "studies": "List the studies that Prony knows, or show some.",
    "engines": "List the load generators that a study can use.",
    "doctor": "Print which system packages servers lack.",
    "host": "Show this machine, and what it lacks.",
    "selftest": "Test verdicts on cases whose truth is known.",
    "calibrate": "Measure what monitors and sandbox cost here.",
    "reference": "Start a server with known delays and errors.",
    "env": "Show the content of Prony's cache.",
    "clean": "Remove what interrupted runs left.",
}


def app_with(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands. Only they are imported, with what they need."""
    app = _without_commands()
    for name in names:
        module = import_module(f"prony.cli.{name}")
        app.command(name, cls=PanelCommand, epilog=module.EPILOG)(getattr(module, name))
    return app


def _overview() -> typer.Typer:
    """Return the command line with the names of all commands and what each does: none of them is imported."""
    app = _without_commands()
    for name, summary in COMMANDS.items():
        app.command(name, short_help=summary)(_is_imported_where_it_is_typed)
    return app


def _is_imported_where_it_is_typed() -> None:
    raise AssertionError("a command was run by its name alone")


def _without_commands() -> typer.Typer:
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
        typed = [word for word in _words(arguments)[:1] if word in COMMANDS]
        app = app_with(typed) if typed else _overview()
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
    except KeyboardInterrupt as interrupt:
        return status_of(interrupt)
    except (BrokenPipeError, SystemExit):
        # The reader of the output has gone (`prony ... | head`), and Typer would exit with status 1:
        # end quietly.
        to_nowhere()
        return ExitCode.DONE
    except Exception as error:
        return _fault(error)


def _words(arguments: list[str]) -> list[str]:
    """Return the words that were typed, also where a shell asks how they may go on.

    *Source*: Typer's scripts of completion: bash hands over `COMP_WORDS`, the others `_TYPER_COMPLETE_ARGS`.
    """
    if "_PRONY_COMPLETE" not in os.environ:
        return arguments
    return os.environ.get("_TYPER_COMPLETE_ARGS", os.environ.get("COMP_WORDS", "")).split()[1:]


def _misuse(error: typer.TyperException) -> UsageError:
    """Return Typer's refusal in the form of Prony's own."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context else "prony --help"
    refused = _refused_value(error)
    message = refused or error.format_message().rstrip(".")
    return UsageError(message[:1].lower() + message[1:], hint)


def _refused_value(error: typer.TyperException) -> str | None:
    """Return option, value and expectation when Typer refused a value; else null."""
    if not isinstance(error, typer.BadParameter) or error.param is None:
        return None
    value, is_not, expected = error.message.rstrip(".").partition(" is not ")
    if not is_not:
        return None
    value = value.strip("'\"")
    return f"`{'/'.join(error.param.opts)} {value}`: expected {_expected(expected, value, error.param.type)}"


def _expected(typers: str, value: str, kind: object) -> str:
    """Return what an option takes, in the words of Prony's own refusals."""
    if typers.startswith("in the range"):
        least, most = getattr(kind, "min", None), getattr(kind, "max", None)
        return f"at least {least}" if least is not None and float(value) < least else f"at most {most}"
    return "a whole number" if typers.startswith("a valid int") else typers


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

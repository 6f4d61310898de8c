"""The entry point: the list of commands, and the handling of their errors.

The only place that catches every exception. Standard output is for data, standard error for messages.

What exit statuses mean, as the help and the reference show it.

The help of a command, with its options under the headings of their panels, and the terms that it uses.

In plain text, which looks the same on any terminal, in a pipe and in the docs. An option that takes one value
is refused when it is typed twice.

Standard output as a command has it: what it does not take is an error with a reason, never a crash.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import EACCES, ELOOP, ENAMETOOLONG, EPERM
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

import typer
from typer.core import TyperCommand

from prony.cli.talk import say, show, status_of
from prony.core.errors import ExitCode, HostError, PronyError, UsageError
from prony.core.glossary import PLACE, terms_in

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter
    from typer._click.core import Parameter


class _Output(TextIOWrapper):
    """A stream that says when it is full; a reader that has gone stays a BrokenPipeError."""

    def write(self, text: str) -> int:
        """Write; errors: HostError."""
        with _with_reason():
            return super().write(text)

    def flush(self) -> None:
        """Hand over what was written; errors: HostError."""
        with _with_reason():
            super().flush()


@contextmanager
def _with_reason() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        to_nowhere()
        raise HostError(
            f"standard output cannot be written: {error.strerror}",
            hint="make room, or send the output elsewhere",
        ) from error


def guard() -> None:
    """Put it in the place of standard output. A letter that its encoding lacks is written as an escape.

    A standard stream that is closed becomes an empty one: else the next file that is opened would be it.
    """
    _reopen()
    if sys.stdout is not sys.__stdout__ or not isinstance(sys.stdout, TextIOWrapper):
        return
    encoding, lines = sys.stdout.encoding, sys.stdout.line_buffering
    sys.stdout = _Output(
        sys.stdout.detach(), encoding=encoding, errors="backslashreplace", line_buffering=lines
    )


def _reopen() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Python has no object for a stream that was closed.
    for name, number in (("__stdout__", 1), ("__stderr__", 2)):
        if getattr(sys, name) is None:
            stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
            setattr(sys, name, stream)
            setattr(sys, name.strip("_"), stream)


def to_nowhere() -> None:
    """Lose all that is still to be written: Python writes it at exit, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


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


MEANINGS = {
    ExitCode.DONE: "done; `run` and `load`: there are valid replies",
    ExitCode.VERDICT_NEGATIVE: (
        "failed: `compare` shows a change that `--fail-if` names; a condition of `load --fail-if` holds; "
        "`selftest` finds too many false verdicts, "
        "or a false verdict on a planted effect"
    ),
    ExitCode.USAGE: "an invalid command line, or an invalid file that it names",
    ExitCode.COULD_NOT_MEASURE: (
        "could not measure: no server starts, no valid reply, this machine lacks something; "
        "`compare`, `load`: the figures cannot decide `--fail-if`; "
        "with `--strict` also: a subject is unavailable, a trial does not count, or no subject qualifies"
    ),
    ExitCode.INTERNAL: "a fault in Prony itself",
    ExitCode.HUNG_UP: "SIGHUP; otherwise like 130",
    ExitCode.INTERRUPTED: (
        "Ctrl-C; finished trials are kept and reported, and of `load` the result so far is printed"
    ),
    ExitCode.TERMINATED: "SIGTERM; otherwise like 130",
}


def epilog() -> str:
    """Return the table for the end of ``prony --help``: a paragraph each, which click does not join."""
    return "\n\n".join(["Exit status:", *(f"{code:3}  {meaning}" for code, meaning in MEANINGS.items())])


SUMMARY = (
    "A dynamometer for web application servers: "
    "which server, how many workers, what it carries, and what stops it."
)

# What the name of a place itself may be, whatever Prony does there.
_OF_PLACES = frozenset((EACCES, EPERM, ENAMETOOLONG, ELOOP))

# In the order of the help, with what it says of each. Each has a file beside this one, with a function of its
# name, and its `EPILOG`.
COMMANDS: Mapping[str, str] = {
    "run": "Measure a study, or your own app on several servers.",
    "tune": "Find the settings with which your app serves best.",
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
        # After this mark click leaves the lines as they are.
        app.command(name, cls=PanelCommand, epilog=f"\b\n{module.EPILOG}")(getattr(module, name))
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
    forget_odd_sizes()
    sys.exit(_status(sys.argv[1:]))


def forget_odd_sizes() -> None:
    """Take out of the environment what no terminal has: Rich and Typer draw as wide as it says."""
    for name in ("COLUMNS", "LINES", "TERMINAL_WIDTH"):
        value = os.environ.get(name, "")
        if not (value.isascii() and value.isdigit() and len(value) < 5 and int(value) > 0):
            os.environ.pop(name, None)


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
    except OSError as error:
        if not error.filename or error.errno not in _OF_PLACES:
            return _fault(error)
        hint = "choose another place, or start Prony as a user who may"
        return _reported(HostError(f"cannot use `{error.filename}`: {error.strerror}", hint=hint))
    except Exception as error:
        return _fault(error)


def _words(arguments: list[str]) -> list[str]:
    """Return the words that were typed, also where a shell asks how they may go on.

    *Source*: Typer's scripts of completion: bash hands over `COMP_WORDS`, the others `_TYPER_COMPLETE_ARGS`.
    """
    if "_PRONY_COMPLETE" not in os.environ:
        return arguments
    return os.environ.get("_TYPER_COMPLETE_ARGS", os.environ.get("COMP_WORDS", "")).split()[1:]


# How other generators call what Prony has by another name.
_OTHER_NAMES = {"--rps": "--rate", "--qps": "--rate"}


def _misuse(error: typer.TyperException) -> UsageError:
    """Return Typer's refusal in the form of Prony's own."""
    context = getattr(error, "ctx", None)
    hint = f"{context.command_path} --help" if context else "prony --help"
    meant = _OTHER_NAMES.get(getattr(error, "option_name", ""), "")
    if context and any(meant in one.opts for one in context.command.params):
        hint = f"{meant} is the number of requests per second; {hint}"
    refused = _refused_value(error)
    message = refused or error.format_message().rstrip(".")
    return UsageError(message[:1].lower() + message[1:], hint)


def _refused_value(error: typer.TyperException) -> str | None:
    """Return option, value and expectation when Typer refused a value; else None."""
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

"""Which options apply to what is asked for: one that would change nothing is refused, not ignored."""

from collections.abc import Container, Mapping

import typer

from prony.cli.run_options import RunOptions
from prony.errors import UsageError

__all__ = [
    "given",
    "refuse_closed_loop_options",
    "refuse_options_beside_resume",
    "refuse_options_of_another_run",
]

# What describes a user's own app and its load, by parameter; a study's file says these things itself.
_OF_OWN_APP = (
    *("servers", "connections", "rate", "arrivals", "duration", "warmup", "timeout", "path", "method"),
    *("header", "body", "env", "env_file", "expect_status", "expect_body", "directory", "interface"),
    *("requirements", "python", "commands"),
)
_OF_APP_ALONE = ("servers", "interface", "requirements", "python")
_OF_ENVIRONMENT = ("directory", "requirements", "python", "env", "env_file")
_OF_OPEN_LOOP = ("arrivals", "seed", "pacing")


def given(context: typer.Context) -> Mapping[str, str]:
    """Return the options that were typed, each as it is spelt in the manual, by parameter."""
    return {
        name: parameter.opts[0]
        for parameter in context.command.params
        if (name := parameter.name) is not None and _is_typed(context, name)
    }


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_options_of_another_run(options: RunOptions, built_in: Container[str]) -> None:
    """Refuse what does not belong to the study, or to the own app, that is named.

    ``built_in``: the names of the apps that came with Prony.

    *Errors*: UsageError when both or neither is named, or for an option that would change nothing.
    """
    typed, study, app, commands = options.typed, options.study, options.own.app, options.own.commands
    if options.what.trust_plan:
        raise UsageError(
            "`--trust-plan` only works with `--resume`", hint="prony run --resume FILE --trust-plan"
        )
    if study is not None and app is not None:
        raise UsageError(
            f"both the study `{study}` and `--app {app}` are named; expected one of them",
            hint=f"prony run {study}; or prony run --app {app}",
        )
    if study is not None:
        _refuse_in_study(typed, study)
    elif app is None and not commands:
        raise UsageError(
            "name a study, or your own app with `--app module:attribute`, or a program with `--command`",
            hint="prony run embedded-servers; prony run --help",
        )
    elif app is None and (wrong := [typed[name] for name in _OF_APP_ALONE if name in typed]):
        raise UsageError(f"`{wrong[0]}`: is for an app on servers, and there is only `--command`")
    else:
        _refuse_with_app(typed)
    if app is not None and app in built_in and not commands:
        _refuse_of_own_app(typed, app)


def _refuse_in_study(typed: Mapping[str, str], study: str) -> None:
    wrong = [typed[name] for name in _OF_OWN_APP if name in typed]
    if wrong:
        shown = ", ".join(f"`{option}`" for option in wrong)
        raise UsageError(
            f"{shown}: does not apply to the study `{study}`, whose file says servers, apps and load",
            hint="--profile, --only, --repeats, --seed and --set apply to a study; for more, edit its file",
        )


def refuse_options_beside_resume(typed: Mapping[str, str], allowed: Container[str]) -> None:
    """Refuse what the archive says already, when a study goes on.

    *Errors*: UsageError naming the options.
    """
    wrong = [option for name, option in typed.items() if name not in allowed]
    if wrong:
        shown = ", ".join(f"`{option}`" for option in wrong)
        raise UsageError(
            f"{shown}: does not apply with `--resume`, which goes on with the plan of the archive",
            hint="leave it out; or begin anew, without --resume",
        )


def _refuse_of_own_app(typed: Mapping[str, str], app: str) -> None:
    wrong = [typed[name] for name in _OF_ENVIRONMENT if name in typed]
    if wrong:
        raise UsageError(
            f"`{wrong[0]}`: is for an app of your own, and `{app}` is a built-in one",
            hint=f"leave it out; or name your own app: --app {app}:app",
        )


def _refuse_with_app(typed: Mapping[str, str]) -> None:
    if "profile" in typed:
        raise UsageError(
            "`--profile`: belongs to a study's file, and `--app` has none",
            hint="--duration, --warmup and --repeats say how long and how often",
        )
    if "arrivals" in typed and "rate" not in typed:
        raise _needs_rate("--arrivals")
    if "python" in typed and "requirements" in typed:
        raise UsageError(
            "`--python` takes an environment as it stands, so `--requirements` would not be installed; "
            "expected one of them"
        )


def refuse_closed_loop_options(typed: Mapping[str, str]) -> None:
    """Refuse what only an open loop has when there is no rate.

    *Errors*: UsageError for an option that would change nothing.
    """
    for name in _OF_OPEN_LOOP:
        if name in typed and "rate" not in typed:
            raise _needs_rate(typed[name])


def _needs_rate(option: str) -> UsageError:
    return UsageError(
        f"`{option}` is for an open loop, and without `--rate` the loop is closed",
        hint=f"add --rate, such as --rate 550, or leave {option} out",
    )

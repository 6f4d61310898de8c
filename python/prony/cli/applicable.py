"""Which options apply to a run: an option that would change nothing is refused, not ignored."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import typer

from prony.core.errors import UsageError

if TYPE_CHECKING:
    from prony.cli.run_options import RunOptions

# Of the load on a user's own app, by parameter; a study's file sets these itself.
_OF_ITS_LOAD = {"streams", "rate", "arrivals", "duration", "warmup", "timeout", "ready_timeout"}
_OF_APP_ALONE = ("servers", "interface", "requirements", "python")
_OF_ENVIRONMENT = (
    *("directories", "requirements", "python", "env", "env_file", "current", "no_current", "before_each"),
)
# For the own apps of a study: what its file cannot know of the machine, nor take from whoever runs it.
_OF_STUDYS_APPS = {"env", "env_file", "before_each", "ready_timeout"}
_OF_OPEN_LOOP = ("arrivals", "seed", "pacing")


def given(context: typer.Context) -> Mapping[str, str]:
    """Return the typed options by parameter, each spelt as in the manual."""
    return {
        name: parameter.opts[0]
        for parameter in context.command.params
        if (name := parameter.name) is not None and _is_typed(context, name)
    }


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_options_of_another_run(options: "RunOptions", built_in: Container[str]) -> None:
    """Refuse options that do not apply to the named study, or to an own app.

    ``built_in``: the names of the apps that came with Prony.

    *Errors*: UsageError when study and app are both named or both missing, or for an option without effect.
    """
    typed, study, app, commands = options.typed, options.study, options.own.app, options.own.commands
    if study is not None and app is not None:
        raise UsageError(
            f"the study `{study}` and `--app {app}` exclude each other; expected one of them",
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
        raise UsageError(f"`{wrong[0]}` only works with `--app`, and there is only `--command`")
    else:
        _refuse_with_app(typed)
    if app is not None and app in built_in and not commands:
        _refuse_of_own_app(typed, app)


def refuse_options_of_servers(typed: Mapping[str, str], app: str, source: str) -> None:
    """Refuse options of servers and their environments for a program that listens on a port itself.

    *Errors*: UsageError naming the first option.
    """
    wrong = [typed[name] for name in _OF_APP_ALONE if name in typed]
    if wrong:
        raise UsageError(
            f"`{wrong[0]}` does not apply to `--app {app}`, a program that serves by itself ({source})",
            hint=f"leave it out; or name an app that servers run, --app {_runs(source)}, beside {wrong[0]}",
        )


def _runs(source: str) -> str:
    return source if source.endswith(".php") else "module:attribute"


def _refuse_in_study(typed: Mapping[str, str], study: str) -> None:
    from prony.cli.load_options import AskOptions, CheckOptions
    from prony.cli.run_options import AppOptions

    groups = (AppOptions, AskOptions, CheckOptions)
    of_own_app = ({one.name for group in groups for one in fields(group)} | _OF_ITS_LOAD) - _OF_STUDYS_APPS
    _refuse_of_study([option for name, option in typed.items() if name in of_own_app], study)


def refuse_options_of_own_apps(typed: Mapping[str, str], study: str) -> None:
    """Refuse options that a study has a use for only where it has an app of the user's own.

    *Errors*: UsageError naming the options.
    """
    _refuse_of_study([option for name, option in typed.items() if name in _OF_STUDYS_APPS], study)


def _refuse_of_study(wrong: Sequence[str], study: str) -> None:
    if wrong:
        shown = ", ".join(f"`{option}`" for option in wrong)
        raise UsageError(
            f"{shown}: does not apply to the study `{study}`, whose file sets servers, apps and load",
            hint="--profile, --only, --connections, --repeats, --seed and --set apply to a study; for more, "
            "edit its file",
        )


def _refuse_of_own_app(typed: Mapping[str, str], app: str) -> None:
    wrong = [typed[name] for name in _OF_ENVIRONMENT if name in typed]
    if wrong:
        raise UsageError(
            f"`{wrong[0]}` only works with an app of your own; `{app}` is a built-in app",
            hint=f"leave it out, or name your own app: --app {app}:app",
        )


def _refuse_with_app(typed: Mapping[str, str]) -> None:
    if "profile" in typed:
        raise UsageError(
            "`--profile` only works with a study: `--app` has no profiles",
            hint="set length and number with --duration, --warmup and --repeats",
        )
    if "arrivals" in typed and "rate" not in typed:
        raise _needs_rate("--arrivals")
    if "python" in typed and "requirements" in typed:
        raise UsageError(
            "`--python` uses an environment unchanged, so `--requirements` would not be installed; "
            "expected one of them"
        )


def refuse_closed_loop_options(typed: Mapping[str, str]) -> None:
    """Refuse options of an open loop when there is neither a rate nor stages.

    *Errors*: UsageError for an option without effect.
    """
    for name in _OF_OPEN_LOOP:
        if name in typed and typed.keys().isdisjoint(("rate", "stages")):
            raise _needs_rate(typed[name])


def _needs_rate(option: str) -> UsageError:
    return UsageError(
        f"`{option}` only works in an open loop, and without `--rate` the loop is closed",
        hint=f"add --rate, such as --rate 550, or leave out {option}",
    )

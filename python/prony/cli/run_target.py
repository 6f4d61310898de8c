"""`prony run --target`: what of a command goes to the target, and what stays here."""

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.target import StudyThere, run_on_target, typed_words
from prony.engine.fleet.hosts import target_host
from prony.errors import UsageError

if TYPE_CHECKING:
    import typer

    from prony.catalog.schema.loader import Catalog
    from prony.cli.run_options import RunOptions

# What this side does with the result, or what is typed otherwise there.
_STAYS = ("target", "study", "directory", "out", "json_to", "full", "no_html", "strict", "env", "listen")
# What would run there, and send the load from there.
_REFUSED = ("engine", "cross_check", "fleet", "fleet_certificates", "python")
_FILES = ("requirements", "env_file", "catalog")


def run_there(context: "typer.Context", options: "RunOptions", known: "Catalog") -> tuple[int, Path]:
    """Run the command on the target; return its status, and where its archive is, if it has sent one.

    *Errors*: UsageError for options that do not apply, and as `run_on_target`.
    """
    for name in _REFUSED:
        if name in options.typed:
            raise UsageError(f"`{options.typed[name]}` does not work with `--target`")
    target = target_host(options.what.target or "")
    if options.load.listen is not None:
        target = target.model_copy(update={"listen": options.load.listen})
    is_own = options.study is None and (bool(options.own.commands) or options.own.app not in known.apps)
    folder = options.own.folder if is_own else None
    file = Path(options.study) if options.study and options.study.endswith(".toml") else None
    _check_files(context, options, folder)
    asked = StudyThere(
        words=[*_study(options, file), *typed_words(context, _STAYS), *_variables(options)],
        out=_archive(options),
        folder=folder,
        file=file,
        variables={name: os.environ[name] for name in _passed(options)},
    )
    return run_on_target(target, asked), asked.out


def _study(options: "RunOptions", file: Path | None) -> list[str]:
    if file is not None and not file.is_file():
        raise UsageError(f"`{file}`: there is no such file")
    return [file.name] if file else [options.study] if options.study else []


def _variables(options: "RunOptions") -> list[str]:
    return [word for pair in options.own.env or () for word in ("--env", pair)]


def _passed(options: "RunOptions") -> list[str]:
    """Return the variables whose values are those of this side.

    *Errors*: UsageError for one that is not set here.
    """
    names = [pair for pair in options.own.env or () if "=" not in pair]
    for name in names:
        if name not in os.environ:
            raise UsageError(f"`--env {name}`: no such variable is set here; expected `{name}=value`")
    return names


def _check_files(context: "typer.Context", options: "RunOptions", folder: Path | None) -> None:
    """Refuse files that the target would not find: it has the app's folder alone.

    *Errors*: UsageError naming the option.
    """
    for name in _FILES:
        value = context.params.get(name)
        for path in value if isinstance(value, list) else [value] if value else []:
            # Where the target's Prony is started, relative paths are those of the folder.
            if folder is None or Path(path).is_absolute() or not (folder / path).exists():
                raise UsageError(
                    f"`{options.typed[name]} {path}`: expected a path in the app's folder; only that is sent",
                    hint="start Prony in that folder, and name the file by its place in it",
                )


def _archive(options: "RunOptions") -> Path:
    """Return the file to write.

    *Errors*: UsageError for a file that exists.
    """
    own = options.study or options.own.app or "app"
    name = re.sub(r"[^a-z0-9]+", "-", Path(own).stem.lower()).strip("-") or "app"
    out = options.output.out or Path(f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.prony")
    if out.exists():
        raise UsageError(f"`{out}` exists already", hint="name another file with `--out`, or move this one")
    if not (out.absolute().parent.is_dir() and os.access(out.absolute().parent, os.W_OK | os.X_OK)):
        raise UsageError(f"`{out}`: `{out.parent}` is not a writable folder")
    return out

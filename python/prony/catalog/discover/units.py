"""The commands in units of systemd and in programs of Supervisor. Pure.

>>> unit = "[Service]\\nWorkingDirectory=/srv/shop\\nExecStart=-/srv/shop/serve"
>>> found = command_of_unit({}.get, "shop.service", unit)
>>> found.source, found.text, found.base
('`ExecStart` in shop.service', '/srv/shop/serve', '/srv/shop')
"""

import re
from collections.abc import Iterator, Mapping
from configparser import Error as ConfigError
from configparser import RawConfigParser
from functools import partial
from posixpath import basename, join

from prony.catalog.discover.images import assignments
from prony.catalog.discover.sources import CONTINUED, Folder, Read, Written

_FOLDERS = (
    "",
    "deploy",
    "deploy/systemd",
    "systemd",
    "etc",
    "etc/systemd/system",
    "conf",
    "config",
    "docker",
    "ops",
)
# *Source*: systemd.service(5), Table 2: special executable prefixes.
_PREFIXES = "@-:+!|"
_EXPANSION = re.compile(r"%\(\w+\)\d*[ds]")
_SPECIFIER = re.compile("%.")
_TEMPLATE = "@.service"
_SUPERVISED = re.compile(r"""(\w+)=("[^"]*"|'[^']*'|[^,\s]*)""")


def commands_of_units(folder: Folder) -> Iterator[Written]:
    """Yield what the units and the programs of Supervisor start that an app's folder has."""
    for place in _FOLDERS:
        for file in folder.names(place):
            path = f"{place}/{file}" if place else file
            text = folder.read(path) or "" if file.endswith((".service", ".conf")) else ""
            if file.endswith(".conf") and "[program:" in text:
                yield from _of_supervisor(path, text)
            elif file.endswith(".service") and (found := command_of_unit(folder.read, path, text)):
                yield found


def command_of_unit(read: Read, path: str, text: str) -> Written | None:
    """Return what the unit at ``path`` starts; None: nothing. ``read``: of the app's folder.

    *Source*: systemd.service(5), systemd.exec(5), systemd.syntax(7): an empty value resets a list.
    """
    values: dict[str, list[str]] = {}
    for line in CONTINUED.sub(" ", text).splitlines():
        key, equals, value = line.strip().partition("=")
        if equals and not key.startswith(("#", ";")):
            values[key.strip()] = [*values.get(key.strip(), []), value.strip()] if value.strip() else []
    started = values.get("ExecStart", [])
    if not started:
        return None
    base = (values.get("WorkingDirectory") or [""])[-1].lstrip("-")
    is_template = basename(path).endswith(_TEMPLATE)
    there = {file: _here(read, path, base, file.lstrip("-")) for file in values.get("EnvironmentFile", [])}
    return Written(
        f"`ExecStart` in {path}",
        _SPECIFIER.sub(lambda found: _specified(found[0], path), started[-1].lstrip(_PREFIXES)),
        dict(pair for line in values.get("Environment", []) for pair in assignments(line)),
        base,
        tuple(
            f"the variables in `{file.lstrip('-')}`, which Prony does not read: "
            f"--env-file {here or _elsewhere(path, file.lstrip('-'))}"
            for file, here in there.items()
        ),
        env_file=next(filter(None, there.values()), ""),
        several=f"the instances of `{basename(path)}`" if is_template else "",
    )


def _specified(specifier: str, path: str) -> str:
    """Return what a specifier of a command stands for: of a template, as its instance 1. Others stay."""
    unit = basename(path)
    prefix, at, given = unit.removesuffix(".service").partition("@")
    instance = (given or "1") if at else ""
    known = {"%%": "%", "%i": instance, "%I": instance, "%p": prefix, "%n": f"{prefix}{at}{instance}.service"}
    return known.get(specifier, specifier)


def _here(read: Read, unit: str, base: str, file: str) -> str:
    """Return the file of variables in the folder that a unit's becomes where it is installed; empty: none."""
    below = file.removeprefix(f"{base}/") if base else file
    found = (below, join(unit.rpartition("/")[0], basename(file)), basename(file))
    return next((path for path in found if not path.startswith("/") and read(path)), "")


def _elsewhere(unit: str, file: str) -> str:
    """Return a unit's file of variables that the app's folder lacks: what this machine's own name is here."""
    return file if unit.startswith("/") else "FILE"


def _expanded(filled: Mapping[str, int | str], found: re.Match[str]) -> str:
    """Return what an expression in a program's command stands for, in its first process. Others stay."""
    try:
        return found[0] % filled
    except (KeyError, TypeError, ValueError):
        return found[0]


def _of_supervisor(path: str, text: str) -> Iterator[Written]:
    """*Source*: Supervisor documentation, Configuration File: `[program:x]`."""
    ini = RawConfigParser(strict=False, inline_comment_prefixes=(";",))
    try:
        ini.read_string(text)
    except ConfigError:
        return
    for name in ini.sections():
        said = ini[name]
        if name.startswith("program:") and "command" in said:
            pairs = _SUPERVISED.findall(said.get("environment", ""))
            copies, first = said.get("numprocs", "1"), said.get("numprocs_start", "0")
            program = name.removeprefix("program:")
            filled: dict[str, int | str] = {
                "process_num": int(first) if first.isdecimal() else 0,
                **{"program_name": program, "group_name": program, "numprocs": copies},
            }
            yield Written(
                f"`command` of `{name}` in {path}",
                _EXPANSION.sub(partial(_expanded, filled), said["command"].replace("\n", " ")),
                {key: value.strip("\"'") for key, value in pairs},
                said.get("directory", ""),
                several="" if copies == "1" else f"`numprocs={copies}`",
            )

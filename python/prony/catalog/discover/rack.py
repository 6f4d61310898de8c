"""How a Rack app in Ruby is served today: the command of Puma, Unicorn or rackup as it was written. Pure.

>>> words = ("{puma}", "-b", "tcp://{host}:{port}", "-w", "2", "-t", "1:5")
>>> found = rack_current(Program("puma", "other", "`web` in Procfile", words), {}.get, ReadingAid())
>>> found.server, found.text, found.options
('puma', 'puma -w 2 -t 1:5', {'--workers': '2', '--threads': '5'})

Its file of settings is passed on, and read here for numbers alone; nothing here runs it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prony.catalog.discover.current import Current, ReadingAid, split_options
from prony.catalog.discover.servers import aliases, options_named
from prony.catalog.discover.sources import Program, Read


@dataclass(frozen=True, slots=True)
class _Launcher:
    """How a command is read. ``server``: the catalogue's; ``address``: how many of its words are that;
    ``environment`` and ``file``: the options of what `RACK_ENV` is to be, and of the file of settings.
    """

    server: str
    address: int
    aliases: Mapping[str, str]
    flags: frozenset[str]
    environment: str
    file: str = ""


# *Source*: puma/cli.rb; bin/unicorn; rack/server.rb, Options; puma/rack_default.rb: where Puma is there,
# rackup starts that.
_LAUNCHERS: Mapping[str, _Launcher] = {
    "puma": _Launcher(
        "puma",
        2,
        aliases(
            "-C config -e environment -f fork-worker -I include -q quiet -v log-requests -R restart-cmd "
            "-s silent -S state -t threads -w workers"
        ),
        options_named(
            "no-config debug preload prune-bundler quiet log-requests silent early-hints fork-worker "
            "redirect-append"
        ),
        "--environment",
        "--config",
    ),
    "unicorn": _Launcher(
        "unicorn",
        2,
        aliases(
            "-c config-file -E env -N no-default-middleware -D daemonize -P pid -s server -I include "
            "-r require -e eval -d debug -w warn"
        ),
        options_named("no-default-middleware daemonize debug warn"),
        "--env",
        "--config-file",
    ),
    "rackup": _Launcher(
        "puma",
        4,
        aliases(
            "-s server -E env -O option -q quiet -D daemonize -P pid -I include -r require -e eval -d debug "
            "-w warn"
        ),
        options_named("quiet daemonize debug warn"),
        "--env",
    ),
}
# *Source*: puma/configuration.rb puma_default_options.
_VARIABLES = {
    "--workers": ("WEB_CONCURRENCY",),
    "--threads": ("PUMA_MAX_THREADS", "MAX_THREADS"),
}
_MODES = ("APP_ENV", "RACK_ENV", "RAILS_ENV")
_PATH = re.compile(r"[\w][\w./-]*")


def rack_current(program: Program, read: Read, around: ReadingAid) -> Current | None:
    """Return the command of today of a Rack app, by the ``program`` that its folder has; None for another
    program than a server of the catalogue, or rackup.
    """
    launcher = _LAUNCHERS.get(program.name)
    if launcher is None or program.command[0] != f"{{{program.name}}}":
        return None
    words = program.command[1 + launcher.address :]
    given = list(split_options(words, launcher.aliases, launcher.flags))
    options = {one.name: one.value for one in given if one.name}
    if options.get("--server", "puma") != "puma":
        return None
    mode = options.get(launcher.environment, "")
    variables = {**program.environment, **around.variables}
    is_puma = launcher.server == "puma"
    path = _file(launcher, options, mode or _first(variables, _MODES) or "development", read)
    said = ruby_values((read(path) or "") if path else "", variables, around.cpus)
    for option, value in said.items():
        options.setdefault(option, value)
    for option, names in _VARIABLES.items() if is_puma else ():
        if value := _first(variables, names):
            options.setdefault(option, value)
    options |= _numbers(options, is_puma=is_puma)
    if path and _PATH.fullmatch(path):
        options |= {"--config" if is_puma else "config": path}
    if mode:
        options |= {"environment": mode}
    is_own = program.name == launcher.server
    gems = ("the Gemfile's packages, in whose place are Debian's",) if read("Gemfile") is not None else ()
    return Current(
        source=program.source,
        text=shlex.join((program.name, *words)),
        server=launcher.server,
        words=words,
        bind=program.command[1 : 1 + launcher.address],
        options=options,
        left_out=(*program.left_out, *gems),
        environment={**program.environment, **({"RACK_ENV": mode} if mode else {})},
        kept=tuple((one.name, one.words) for one in given if one.name and is_own),
        program="" if is_own else program.name,
    )


def rack_file(program: Program) -> str:
    """Return the Rack application that a program's command names, or the usual one."""
    return next((word for word in program.command[1:] if word.endswith(".ru")), "config.ru")


def _file(launcher: _Launcher, options: Mapping[str, str], mode: str, read: Read) -> str:
    """Return the path of the file of settings; empty: none is read.

    *Source*: puma/configuration.rb config_files.
    """
    said = options.get(launcher.file, "") if launcher.file else ""
    if said or launcher.server != "puma" or "--no-config" in options:
        return said.removeprefix("./") if said != "-" else ""
    usual = (f"config/puma/{mode}.rb", "config/puma.rb")
    return next((path for path in usual if read(path) is not None), "")


def _first(variables: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((variables[name] for name in names if variables.get(name)), "")


def _numbers(options: Mapping[str, str], *, is_puma: bool) -> dict[str, str]:
    """Return the numbers as settings of the catalogue have them: of threads the most, and of workers one
    where Puma serves in its main process.
    """
    found = {}
    if "--threads" in options:
        found["--threads"] = options["--threads"].rpartition(":")[2]
    if "--workers" in options:
        workers = options["--workers"]
        found["--workers"] = "1" if is_puma and workers == "0" else workers
        # Unicorn has no option of that name.
        found |= {} if is_puma else {"workers": workers}
    return found


# --- a file of settings -----------------------------------------------------------------------------------


_STATEMENT = re.compile(
    r"(?P<indent>\s*)(?P<name>workers|worker_processes|threads)(?:\((?P<inside>[^#]+)\)|\s+(?P<value>[^#]+))"
)
_ASSIGNED = re.compile(r"(?P<name>[a-z_]\w*)\s*=\s*(?P<value>[^#=][^#]*)")
_CALLED = re.compile(r"Integer\((?P<inner>.*)\)|\((?P<grouped>.+)\)\.to_i|(?P<before>.+)\.to_i")
_OF_VARIABLE = re.compile(
    r"ENV(?:\.fetch)?[(\[]\s*['\"](?P<name>\w+)['\"]\s*(?:,\s*(?P<second>[^)\]]+))?[)\]]"
    r"(?:\s*\{\s*(?P<block>[^}]+)\}|\s*\|\|\s*(?P<other>.+))?"
)
_IF_VARIABLE = re.compile(r"(?P<value>.+?)\s+if\s+ENV(?:\.key\?\(|\[)['\"](?P<name>\w+)['\"][)\]]")


def ruby_values(text: str, variables: Mapping[str, str], cpus: int) -> dict[str, str]:
    """Return the numbers of workers and threads that a file of settings in Ruby has, by option; an empty text
    for one that is computed otherwise, or under a condition. It is read, never run.

    >>> ruby_values("count = ENV.fetch('MAX', 3)\\nthreads count, count", {"MAX": "4"}, 2)
    {'--threads': '4'}
    """
    known = _Values(variables, cpus)
    found: dict[str, str] = {}
    for line in text.splitlines():
        if match := _STATEMENT.match(line):
            option = "--threads" if match["name"] == "threads" else "--workers"
            given = (match["inside"] or match["value"]).strip()
            value = known.last(given, is_inside=bool(match["indent"]))
            found |= {} if value is None else {option: value}
        elif match := _ASSIGNED.match(line):
            known.assigned[match["name"]] = known.value(match["value"].strip())
    return found


@dataclass(slots=True)
class _Values:
    variables: Mapping[str, str]
    cpus: int
    assigned: dict[str, str] = field(default_factory=dict)

    def last(self, text: str, *, is_inside: bool) -> str | None:
        """Return the last of a statement's values; None: its condition does not hold."""
        if guarded := _IF_VARIABLE.fullmatch(text):
            if not self.variables.get(guarded["name"]):
                return None
            text = guarded["value"]
        return "" if is_inside else self.value(list(_arguments(text))[-1])

    def value(self, text: str) -> str:
        """Return a number; empty: it is computed otherwise."""
        text = text.strip()
        if called := _CALLED.fullmatch(text):
            return self.value(called["inner"] or called["grouped"] or called["before"])
        if read := _OF_VARIABLE.fullmatch(text):
            usual = read["second"] or read["block"] or read["other"] or ""
            return self.variables.get(read["name"]) or self.value(usual.strip("'\" "))
        if text == "Etc.nprocessors":
            return str(self.cpus)
        return text if text.isdecimal() else self.assigned.get(text, "")


def _arguments(text: str) -> Iterator[str]:
    """Yield the arguments of a call: its commas inside of brackets are none."""
    depth, begin = 0, 0
    for at, one in enumerate(text):
        depth += (one in "([{") - (one in ")]}")
        if one == "," and not depth:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]

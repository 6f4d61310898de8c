"""How an app in Python is served today: a command as it was written, to the letter. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> procfile = "web: gunicorn -w 3 --bind 0.0.0.0:$PORT config.wsgi --preload"
>>> folder = Folder({"Procfile": procfile}.get, lambda path: [])
>>> found = find_current(folder, ReadingAid()).current
>>> found.server, found.words, found.left_out
('gunicorn', ('-w', '3', '{app}', '--preload'), ('`--bind 0.0.0.0:$PORT`',))

A configuration file is passed on; nothing here runs it.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import join, normpath

from prony.archive.codec import is_secret
from prony.catalog.discover.configuration import (
    AS_IT_IS,
    filled_options,
    python_values,
    served_by_paste,
    toml_values,
    uwsgi_options,
)
from prony.catalog.discover.interface import is_literal_call
from prony.catalog.discover.scripts import Served, app_of_tool, called_module, of_project, served_by
from prony.catalog.discover.servers import (
    OF_PLACK,
    PASTE,
    PATHS,
    ROBYN,
    ROOTS,
    SERVERS,
    SUBCOMMANDS,
    TOOL_ALIASES,
    TOOL_FLAGS,
    TOOL_REPLACED,
    TOOLS,
    ServerCommand,
    options_named,
    with_address,
)
from prony.catalog.discover.sources import Folder, Module, Sources, Written
from prony.catalog.discover.written import (
    CLOSING,
    PORT_READ,
    as_below,
    composed_below,
    lines_of_script,
    only_place,
    places_below,
    unwrapped,
    written_commands,
)

TYPED = "`--current`"
COUNTS = options_named("workers processes threads blocking-threads")
"""The options that say how many processes a server has, and threads in each."""
SEARCHED = "Procfile, Dockerfile, compose.yaml, units of systemd, Makefile or a script that starts a server"
"""Where a command of today may stand."""

_TARGET = re.compile(r"(?:(?:wsgi|asgi):)?(?P<target>[A-Za-z_][\w.]*:[A-Za-z_]\w*)(?P<call>\(.*\))?")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_PYTHON = re.compile(r"python[\d.]*")
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_REDIRECTION = re.compile(r"(?<=\s)(?:\d?>{1,2}&?|&>|<)\s*[^\s&;|]+")
# In two levels of parentheses inside: a sum of what others print.
SUBSTITUTION = re.compile(r"\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|`[^`]*`")
# *Source*: GNU coreutils, nproc; getconf(1); POSIX shell, Arithmetic Expansion.
_COUNTING = (
    r"\s*(?:(?:shell )?nproc(?: --all)?|getconf _NPROCESSORS_ONLN)"
    r"(?: 2> ?/dev/null)?(?: *\|\| *echo \d+)?\s*"
)
_CPUS = re.compile(rf"\$\({_COUNTING}\)|`{_COUNTING}`")
_SUM = re.compile(r"\$\(\((?P<sum>[\d ()*+-]{1,99})\)\)")
_SUBSTITUTED = re.compile(r"\$\(|`")
VARIABLE = re.compile(r"\$(?:(?P<plain>\w+)|\{(?P<name>\w+)(?::?[-=](?P<usual>[^}]*))?\})")
AS_MODULE = {"waitress": "waitress-serve"}
# What stands before a program and changes nothing of it.
_PREFIXES = ("exec", "command", "env", "nohup")
# Addresses and the system's own, which no variable of a file may set for a server that Prony starts.
NOT_PASSED = ("PORT", "HOST", "PATH", "HOME", "USER", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True, slots=True)
class ReadingAid:
    """What a command is read with: what was ``typed`` in its place, the user's ``variables``, and the number
    of the machine's CPUs, which a configuration may ask for.
    """

    typed: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    cpus: int = 1


@dataclass(frozen=True, slots=True)
class Current:
    """How the app is served today.

    ``server``: the catalogue's entry; empty: a program in Python that serves by itself. ``words``: what its
    program is started with, with placeholders for the app and, where it has one, its address; ``bind``: the
    words of the address. ``options``: by their long names, those of its configuration too.

    ``target``: the app that it serves, as written, or empty; ``call``: that makes the app, with these
    arguments in parentheses.
    ``left_out``: what of it is not taken over, each in words; ``environment``: variables that its source
    sets, and that are no secrets by their names; ``also``: where else a command stands; ``script``: the
    module that it runs, of a program that serves by itself; ``files``: templates of what it reads in the
    place of a file with an address; ``root``: the folder, in the app's, where it begins imports;
    ``env_file``: one there with the variables of its source, or empty. ``address``: the variables beside
    ``HOST`` and ``PORT`` from which a program that serves by itself takes its address, with placeholders.
    ``kept``: the options in its words, by their long names, each with those words; ``lost``: those that are
    not taken over and may change what it does, as they are written. ``by_variable``: the numbers that a
    variable says and neither its command nor its configuration, by their options. ``file``: that of uWSGI's
    options where the command itself says no number, and ``keys``: the names of the numbers there, by their
    options. ``program``: what starts the server, where that is not its own program, such as rackup.
    ``is_whole``: the text is all that stands there.
    """

    source: str
    text: str
    server: str
    words: tuple[str, ...]
    bind: tuple[str, ...]
    options: Mapping[str, str]
    target: str = ""
    call: str = ""
    left_out: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    script: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    root: str = ""
    env_file: str = ""
    address: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[tuple[str, tuple[str, ...]], ...] = ()
    lost: Mapping[str, str] = field(default_factory=dict)
    by_variable: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    is_whole: bool = True

    @property
    def uncounted(self) -> tuple[str, ...]:
        """What says how many processes and threads it has, or of which class, and cannot be read."""
        # A configuration elsewhere says it where the command does not.
        elsewhere = set() if "--workers" in self.options else {"--config"}
        names = COUNTS | {"--worker-class"} | elsewhere
        varying = (f"`{' '.join(words)}`" for name, words in self.kept if name.startswith("--cheaper"))
        return (*(shown for name, shown in self.lost.items() if name in names), *varying)

    @property
    def app(self) -> str:
        """The app as a user types it: a factory that is given nothing by its name."""
        return self.target if self.call in ("", "()") else f"{self.target}{self.call}"

    def serves(self, target: str) -> bool:
        """Return whether it serves the app ``target``, as far as it names one."""
        module, _, attribute = self.target.partition(":")
        wanted, _, other = target.partition(":")
        return not module or (module == wanted and (not attribute or attribute == other))


@dataclass(frozen=True, slots=True)
class FoundCurrent:
    """``current`` null: there is no such command, or none that can be taken over; ``reason``: why not."""

    current: Current | None = None
    reason: str = ""


def find_current(folder: Folder, around: ReadingAid, above: Sequence[Written] = ()) -> FoundCurrent:
    """Return the command by which the folder's app is served today: what was typed, else the first one that
    its files have, else one of those that stand ``above`` it.
    """
    typed = [unwrapped(folder.read, Written(TYPED, around.typed))] if around.typed else []
    written = typed or [*written_commands(folder), *above]
    found = [(one, _read(one, folder, around)) for one in written]
    known = [(one, current) for one, current in found if current]
    if not known:
        shown = "; ".join(f"{one.source} is `{one.text}`" for one in written)
        return FoundCurrent(
            reason=f"{shown}: no server or program in Python that Prony knows" if shown else ""
        )
    chosen, first = next((pair for pair in known if _is_for_requests(*pair)), known[0])
    also = tuple(
        f"{one.source}: `{one.text}`" for one, _ in found if one is not chosen and one.text != first.text
    )
    return FoundCurrent(replace(first, also=also))


def _is_for_requests(written: Written, current: Current) -> bool:
    """Return whether a command serves: of several units or services a script may also be one that only works
    off a queue.
    """
    return _is_sure(current) or not written.source.startswith(("`ExecStart`", "`command` of"))


# --- a command's words ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Command:
    """A simple command: ``program``, the words behind it, and what stood around it in the text."""

    program: str
    words: tuple[str, ...]
    environment: Mapping[str, str]
    left_out: tuple[str, ...]
    substituted: Sequence[str] = ()


def _read(written: Written, folder: Folder, around: ReadingAid) -> Current | None:
    command = _command(_with_cpus(of_project(folder.read, written.text), around.cpus))
    if command is None:
        return _of_script(written, folder, around)
    set_there = {name: _with_cpus(value, around.cpus) for name, value in written.environment.items()}
    known = {**set_there, **command.environment, **around.variables}
    return _Reading(replace(written, environment=set_there), command, folder, known, around.cpus).current()


def _of_script(written: Written, folder: Folder, around: ReadingAid) -> Current | None:
    """Return what a shell's script of the folder starts at its end; above that only what surely serves: the
    steps before it prepare something.
    """
    lines = [one for one in lines_of_script(folder.read, written) if one.text not in CLOSING]
    read = ((line, _read(line, folder, around)) for line in lines if _command(line.text))
    return next((found for line, found in read if found and (line is lines[0] or _is_sure(found))), None)


def _is_sure(current: Current) -> bool:
    """Return whether it is known to serve; a script may do anything."""
    return bool(current.server or current.target or not current.script)


# --- in which folder ---------------------------------------------------------------------------------------


def started_below(folder: Folder, commands: Sequence[Written]) -> str:
    """Return the folder below this one in which the first of the commands that starts Python works: the one
    that it changes to, else the only one that has what it starts. Empty: this one.

    *Errors*: UsageError when several have it.
    """
    lines = [line for one in commands for line in _spelled(one, folder)]
    known = [(line, places) for line in lines if (places := _places(line, folder))]
    serving = (places for line, places in known if _is_serving(line, folder, places[0]))
    return only_place(next(serving, known[0][1] if known else [])) or ""


def _places(line: Written, folder: Folder) -> list[str]:
    """Return the folders that have what a command starts; empty: the one where it is written."""
    if line.place and _is_in(line, folder, line.place):
        return [line.place]
    if _is_here(line, folder):
        return [""]
    return [place for place in places_below(folder, _NO_APPS) if _is_in(line, folder, place)]


def _is_serving(line: Written, folder: Folder, place: str) -> bool:
    inner, there = (folder.below(place), as_below(line, place)) if place else (folder, line)
    found = _read(there, inner, ReadingAid())
    return found is not None and _is_for_requests(line, found)


def commands_below(folder: Folder, place: str) -> list[Written]:
    """Return the commands in a folder's files for one ``place`` below it."""
    found = []
    for one in written_commands(folder):
        inside = (line for line in _spelled(one, folder) if _is_in(line, folder, place))
        first = next((line for line in inside if line.place == place or not _is_here(line, folder)), None)
        if chosen := first or (one if one.place == place else None):
            found.append(as_below(chosen, place))
    return [*found, *composed_below(folder.read, place)]


_NO_APPS = ("node_modules", "vendor", "test", "tests", "docs", "examples", "venv", "env")


def _spelled(written: Written, folder: Folder) -> list[Written]:
    """Return a command that starts Python or a server; of one that starts a script, its lines that do."""
    if _command(of_project(folder.read, written.text)):
        return [written]
    return [line for line in lines_of_script(folder.read, written) if _command(line.text)]


def _is_in(written: Written, folder: Folder, place: str) -> bool:
    return written.place in ("", place) and _is_here(as_below(written, place), folder.below(place))


def _is_here(written: Written, folder: Folder) -> bool:
    """Return whether a folder has the module that a command starts or serves."""
    found = _read(written, folder, ReadingAid())
    if found is None:
        return False
    if found.words[1:2] == ("manage.py",):
        return True
    name = (found.target or found.script).partition(":")[0]
    return bool(name) and Sources(folder.read, root=found.root).module(name) is not None


def _command(text: str) -> _Command | None:
    """Return the last simple command of a shell's line that starts a server or Python; None without one."""
    substituted = SUBSTITUTION.findall(text)
    # Each substitution is one word, which nothing here can know.
    text = SUBSTITUTION.sub(lambda match: f"${{_{substituted.index(match[0])}}}", text)
    left = [f"`{_with_substituted(one.strip(), substituted)}`" for one in _REDIRECTION.findall(text)]
    plain = _REDIRECTION.sub(" ", text)
    lexer = shlex.shlex(re.sub(r"\\\n", " ", plain), posix=True, punctuation_chars=";&|\n")
    lexer.whitespace_split, lexer.commenters, lexer.whitespace = True, "", " \t\r"
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    parts: list[list[str]] = [[]]
    for token in tokens:
        if set(token) <= set(";&|\n"):
            parts.append([])
        else:
            parts[-1].append(token)
    filled = [part for part in parts if part]
    chosen = next((part for part in reversed(filled) if _start_of(part) is not None), None)
    if chosen is None or (at := _start_of(chosen)) is None:
        return None
    environment = {m["name"]: m["value"] for word in chosen[:at] if (m := _ASSIGNMENT.fullmatch(word))}
    before = [word for word in chosen[:at] if word not in _PREFIXES and not _ASSIGNMENT.fullmatch(word)]
    around = [*(shlex.join(part) for part in filled if part is not chosen), shlex.join(before)]
    left = [*(f"`{one}`, which is not run" for one in around if one), *left]
    program, words = chosen[at], chosen[at + 1 :]
    if program.endswith(".py"):
        program, words = "python", [program.removeprefix("./"), *words]
    start = _own_options(words)
    is_module = words[start:] and words[:start][-1:] == ["-m"]
    module = AS_MODULE.get(words[start], words[start]) if is_module else ""
    if _PYTHON.fullmatch(_name(program)) and (module in SERVERS or module in TOOLS):
        left += [f"`{shlex.join(words[: start - 1])}` of Python"] * (start > 1)
        program, words = module, words[start + 1 :]
    if "/bin/" in program and not program.startswith(("/usr/", "/bin/")):
        place = program.rpartition("/bin/")[0]
        left.append(f"`{place}`, in whose place Prony builds an environment (--python {place} takes it)")
    return _Command(_name(program), tuple(words), environment, tuple(left), substituted)


def _with_substituted(text: str, substituted: Sequence[str]) -> str:
    for number, one in enumerate(substituted):
        text = text.replace(f"${{_{number}}}", one)
    return text


def _with_cpus(text: str, cpus: int) -> str:
    """Return a shell's line with the machine's number of CPUs where it asks for that, and sums of it.

    >>> _with_cpus("gunicorn -w $((2 * $(nproc) + 1)) --threads `nproc` shop:app", 2)
    'gunicorn -w 5 --threads 2 shop:app'
    """

    def added(match: re.Match[str]) -> str:
        return python_values(f"number = {match['sum'].strip()}", cpus, {}).get("number") or match[0]

    return _SUM.sub(added, _CPUS.sub(str(cpus), text))


def _own_options(words: Sequence[str]) -> int:
    """Return how many of Python's words are its own options: what it runs is behind them.

    *Source*: Python documentation, Command line and environment.

    >>> _own_options(["-X", "dev", "-W", "error", "-m", "shop"]), _own_options(["-u", "shop.py"])
    (5, 1)
    """
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 1 if words[at] not in ("-X", "-W", "--check-hash-based-pycs") else 2
        if words[at - 1] in ("-m", "-c"):
            break
    return min(at, len(words))


def _start_of(words: Sequence[str]) -> int | None:
    """Return where the words of a server, of Python, or of a script that is a program, begin."""
    found = (
        at
        for at, word in enumerate(words)
        if (name := _name(word)) in SERVERS or name in (*TOOLS, PASTE) or _PYTHON.fullmatch(name)
    )
    others = (k for k, word in enumerate(words) if word not in _PREFIXES and not _ASSIGNMENT.fullmatch(word))
    first = next(others, None)
    return next(found, first if first is not None and words[first].endswith(".py") else None)


def _name(program: str) -> str:
    return program.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class _Option:
    """One option, or a word that is none: ``name`` is empty. ``words``: as they stand."""

    name: str
    value: str
    words: tuple[str, ...]


def split_options(
    words: Sequence[str], aliases: Mapping[str, str], flags: frozenset[str]
) -> Iterator[_Option]:
    """Yield a command's options by their long names, and its words that are none."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            yield _Option("", word, (word,))
            continue
        if not word.startswith("--") and len(name) > 2 and name[:2] in aliases:
            yield _Option(aliases[name[:2]], word[2:].removeprefix("="), (word,))
            continue
        long = aliases.get(name, name)
        is_alone = not rest or (rest[0].startswith("-") and rest[0] != "-")
        if equals or long in flags or long.startswith("--no-") or is_alone:
            yield _Option(long, value, (word,))
        else:
            value = rest.pop(0)
            yield _Option(long, value, (word, value))


# --- what of it is taken over -----------------------------------------------------------------------------


@dataclass(slots=True)
class _Reading:
    """Reads one command. ``variables``: those that are known."""

    written: Written
    command: _Command
    folder: Folder
    variables: Mapping[str, str]
    cpus: int
    kept: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    taken: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    by_variable: dict[str, str] = field(default_factory=dict)
    file: str = ""
    keys: dict[str, str] = field(default_factory=dict)
    target: str = ""
    call: str = ""

    def current(self) -> Current | None:
        server = SERVERS.get(self.command.program)
        found = self._of_server(server) if server else self._of_own_program()
        if found is None:
            return None
        passed, kept_back = self._environment()
        said = f"{', '.join(f'`{name}`' for name in kept_back)}: --env NAME=value passes a variable"
        copies = {"copies": self.written.several} if self.written.several else {}
        return replace(
            found,
            root=found.root or self._root(),
            lost={**found.lost, **copies},
            left_out=(
                *found.left_out,
                *self.command.left_out,
                *self.left_out,
                *self.written.left_out,
                *self._not_searched(),
                *([said] if kept_back else []),
            ),
            environment=passed,
            env_file=self.written.env_file,
        )

    def _root(self) -> str:
        """Return the folder, in the app's, where imports begin: Python searches `PYTHONPATH` in its order."""
        said = next((self.options[name] for name in ROOTS if name in self.options), "")
        given = {**self.written.environment, **self.command.environment}.get("PYTHONPATH", "")
        searched = [said] if said else self._filled(given)[0].split(":")
        places = (normpath(join(self.written.place, self._placed(one))) for one in searched if one)
        inside = (one for one in places if not one.startswith(("/", "..")) and (said or self.folder.has(one)))
        found = next((one for one in inside if one != "."), "")
        return found or ("" if said else self.written.place)

    def _not_searched(self) -> list[str]:
        """Return what of `PYTHONPATH` the app's folder does not have, in words."""
        given = {**self.written.environment, **self.command.environment}.get("PYTHONPATH", "")
        lacking = [one for one in given.split(":") if self._placed(one).startswith("/")]
        return [f"`{':'.join(lacking)}` in PYTHONPATH, which is not in the app's folder"] if lacking else []

    def _environment(self) -> tuple[dict[str, str], list[str]]:
        """Return the variables of the command's source that all servers get, and the names of the others."""
        given = {**self.written.environment, **self.command.environment}
        passed: dict[str, str] = {}
        kept_back: list[str] = []
        for name, written in given.items():
            if name in NOT_PASSED:
                continue
            value, unknown = self._filled(written)
            if unknown or _SUBSTITUTED.search(value) or is_secret(name):
                kept_back.append(name)
            else:
                passed[name] = self.written.value_here(value)
        return passed, kept_back

    def _filled(self, word: str) -> tuple[str, str]:
        """Return a word with its variables filled in, and the first one that is not known."""
        unknown = [match[0] for match in VARIABLE.finditer(word) if self._known(match) is None]
        if unknown:
            return word, self._as_written(unknown[0])
        return VARIABLE.sub(lambda match: str(self._known(match)), word), ""

    def _as_written(self, text: str) -> str:
        """Return a text with what a shell would run in its place again."""
        return _with_substituted(text, self.command.substituted)

    def _known(self, match: re.Match[str]) -> str | None:
        name: str = match["plain"] or match["name"]
        usual: str | None = match["usual"]
        return "{port}" if name == "PORT" else self.variables.get(name, usual)

    def _made(self, source: str, server: str, bind: tuple[str, ...]) -> Current:
        return Current(
            source=source,
            text=self.written.text,
            server=server,
            words=tuple(self.kept),
            bind=bind,
            options=self.options,
            target=self.target,
            call=self.call,
            kept=tuple(self.taken),
            lost=self.lost,
            by_variable=self.by_variable,
            file=self.file,
            keys=self.keys,
            is_whole=self.written.is_whole,
        )

    def _of_server(self, server: ServerCommand) -> Current | None:
        words = self._of_file(server)
        if words is None:
            return None
        for option in split_options(words, server.aliases, server.flags):
            self._take(server, option)
        if server.entry == "gunicorn":
            # What stands there is passed to it as a variable, and the command's own words win.
            more = self.variables.get("GUNICORN_CMD_ARGS", "").split()
            for option in split_options(more, server.aliases, server.flags):
                self.options.setdefault(option.name, option.value)
        self._configured(server)
        for name, number in server.variables.items():
            if self.variables.get(name) and number not in self.options:
                self.options[number] = self.variables[name]
                self.by_variable[number] = name
        if server.entry == "uwsgi":
            return self._of_uwsgi()
        if server.entry in OF_PLACK.values() and self._has_psgi():
            self.kept.append(_PSGI_APP)
        if _PSGI_APP in self.kept:
            return self._of_plack()
        if not self.target and server.entry != "gunicorn":
            return None
        entry = self._of_gunicorn() if server.entry == "gunicorn" else server.entry
        return self._made(self.written.source, entry, server.bind)

    def _of_gunicorn(self) -> str:
        """Return the entry of its class; one that the catalogue has not is none that can be measured."""
        worker = self.options.get("--worker-class", "sync")
        if not _WORKER_CLASS.fullmatch(worker):
            self.lost.setdefault("--worker-class", f"`--worker-class {worker or '...'}`")
        if _UVICORN_WORKER.fullmatch(worker):
            self.options["worker"] = worker.rpartition(".")[2]
        return _gunicorn_entry(self.options)

    def _take(self, server: ServerCommand, option: _Option) -> None:
        """Keep an option as it is written, or say why not."""
        shown = f"`{self._as_written(' '.join(option.words))}`"
        if option.name in server.replaced:
            self.left_out.append(shown)
            self.options[option.name] = option.value
            return
        if option.name in server.app | server.factory:
            self.options[option.name] = option.value
            self.call = self.call or ("()" if option.name in server.factory else "")
            return
        if any("{" in VARIABLE.sub("", word) or "}" in VARIABLE.sub("", word) for word in option.words):
            self._lose(option, shown, "whose braces Prony does not pass on")
            return
        filled = [self._filled(word) for word in option.words]
        unknown = next((name for _, name in filled if name), "")
        if unknown:
            self._lose(option, shown, f"for `{unknown}` is not known")
            return
        words = [self._placed(word) for word, _ in filled]
        if not option.name:
            self._positional(words[0])
            return
        value = self._placed(self._filled(option.value)[0])
        if option.name in server.logs and value not in {"-", ""}:
            self.left_out.append(f"{shown}, which goes to standard output")
            words = [option.name, "-"]
        elif option.name in PATHS and value.removeprefix("file:").startswith("/"):
            self._lose(option, shown, "which is not in the app's folder")
            return
        self.options[option.name] = value
        self.kept += words
        self.taken.append((option.name, tuple(words)))

    def _lose(self, option: _Option, shown: str, why: str) -> None:
        self.left_out.append(f"{shown}, {why}")
        self.lost |= {option.name: shown} if option.name else {}

    def _placed(self, word: str) -> str:
        """Return a word with a path below the folder of its source as one below the app's folder."""
        name, equals, value = word.rpartition("=")
        return f"{name}{equals}{self.written.placed(value)}"

    def _positional(self, word: str) -> None:
        match = _target(word)
        if match and not self.target:
            self.target = match["target"]
            self.call = match["call"] or self.call
            self.kept.append("{interface}:{app}" if match.start("target") else "{app}")
        elif word.endswith(".psgi"):
            self.kept.append(_PSGI_APP)
        elif _MODULE.fullmatch(word) and not self.target:
            self.target = word
            self.kept.append("{app}")
        else:
            self.kept.append(word)

    def _configured(self, server: ServerCommand) -> None:
        """Note what a configuration file says where the command does not: it is passed on as it is."""
        option, usual = server.configuration
        path = self.options.get(option, usual).removeprefix("file:").removeprefix("./") if option else ""
        if path.startswith("python:"):
            path = f"{path.removeprefix('python:').replace('.', '/')}.py"
        text = self.folder.read(path) if path else None
        if text:
            said = (
                toml_values(text)
                if path.endswith(".toml")
                else python_values(text, self.cpus, self.variables)
            )
            for name, value in said.items():
                if value != "False":
                    option = server.configured.get(name, f"--{name.replace('_', '-')}")
                    self.options.setdefault(option, value)
            kept = sorted(said.keys() & AS_IT_IS)
            self.left_out += [f"`{name}` in {path}, which stays as it is there" for name in kept]
            match = _target(said.get("wsgi_app", ""))
            if not self.target and match:
                self.target, self.call = match["target"], match["call"] or ""
            self.target = self.target or said.get("wsgi_app", "")

    # --- uWSGI ---

    def _of_file(self, server: ServerCommand) -> tuple[str, ...] | None:
        """Return the words, with the options of uWSGI's configuration in the place of its file."""
        words = self.command.words
        if server.entry != "uwsgi":
            return words
        for at, word in enumerate(words):
            option, _, value = word.rpartition("=")
            path = self._placed(value).removeprefix("./")
            if not path.startswith("-") and path.endswith(UWSGI_FILES):
                start = at - 1 if not option and at and words[at - 1] in _UWSGI_NAMED else at
                text = self.folder.read(path)
                if text is None:
                    return None
                before, behind = words[:start], words[at + 1 :]
                beside = split_options((*before, *behind), server.aliases, server.flags)
                self.file = "" if COUNTS & {one.name for one in beside} else path
                return (*before, *self._file_words(path, text), *behind)
        return words

    def _file_words(self, path: str, text: str) -> Iterator[str]:
        """*Source*: uWSGI documentation, Configuring uWSGI; its magic variables are not known here."""
        options, known = uwsgi_options(path, text), SERVERS["uwsgi"]
        for name, value in filled_options(options, self.cpus, {*known.flags, *known.replaced, *known.app}):
            if value.lower() == "false":
                continue
            long = known.aliases.get(f"--{name}", f"--{name}")
            if long in COUNTS:
                self.keys[long] = name
            if "%" in value or "$(" in value or "@(" in value:
                long = "" if long in known.replaced else long
                self._lose(_Option(long, value, ()), f"`{name} = {value}`", "which uWSGI fills in")
            else:
                yield f"--{name}" if value.lower() == "true" else f"--{name}={value}"

    def _of_uwsgi(self) -> Current:
        said = self.options
        module = said.get("--wsgi") or said.get("--wsgi-file", "").removesuffix(".py").replace("/", ".")
        if "=" in said.get("--mount", ""):
            module = said["--mount"].partition("=")[2].removesuffix(".py").replace("/", ".")
        called = said.get("--callable", "application")
        if module:
            target = module if ":" in module else f"{module}:{called}"
            match = _target(target)
            self.target, self.call = (match["target"], match["call"] or "") if match else ("", "")
        http = next((name for name in ("http", "http11-socket", "http-socket") if f"--{name}" in said), "")
        if not http:
            self.left_out.append("uWSGI's own protocol, for a frontend: it is measured over HTTP/1.1")
            http = "http11-socket"
        closing = ("--add-header", "Connection: close") if http == "http-socket" else ()
        kept = said.get("--http-keepalive")
        said["http"] = {"http": "router" if kept is None else "router-keepalive"}.get(http, http)
        is_perl = "--psgi" in said
        plugin = ("--plugin", "http,psgi" if http == "http" else "psgi") if is_perl else ()
        app = ("--psgi", _PSGI_APP) if is_perl else ("--wsgi", "{app}")
        self.kept = [*self.kept, *([] if "--die-on-term" in said else ["--die-on-term"]), *app]
        bind = (*plugin, f"--{http}", "{host}:{port}", *closing)
        return self._made(self.written.source, "uwsgi-psgi" if is_perl else "uwsgi", bind)

    def _has_psgi(self) -> bool:
        """Return whether the app is named by an option, or by none and has the usual name."""
        named = self.options.get("--app", "app.psgi")
        return _PSGI_APP not in self.kept and named.endswith(".psgi") and self.folder.read(named) is not None

    def _of_plack(self) -> Current | None:
        """*Source*: Plack::Runner: `plackup` takes the environment `development`, where none is named."""
        given = {"starman": "Starman", "twiggy": "Twiggy"}.get(self.command.program)
        named = given or self.options.get("--server", "")
        entry = OF_PLACK.get(named)
        if entry is None:
            return None
        self.left_out = [one for one in self.left_out if not one.startswith(("`-s ", "`--server"))]
        usual = () if given or "--env" in self.options else ("-E", "development")
        by_name = ("-s", named) if entry == "starlet" else ()
        self.kept = [*usual, *by_name, *self.kept]
        bind = SERVERS[entry].bind if entry in SERVERS else SERVERS["plackup"].bind
        return self._made(self.written.source, entry, bind)

    # --- a program that serves by itself ---

    def _of_own_program(self) -> Current | None:
        program, words = self.command.program, self.command.words
        if program == PASTE:
            return self._of_paste(words)
        return self._of_tool(program, words) if program in TOOLS else self._of_python(words)

    def _of_python(self, words: tuple[str, ...]) -> Current | None:
        at = _own_options(words)
        before, rest = words[:at], words[at:]
        script = self._script(rest[0], before[-1:]) if rest else None
        if script is None:
            return None
        if rest[0].endswith("manage.py") and rest[1:2] == ("runserver",):
            self.left_out += [f"`{word}`" for word in rest[2:] if not word.startswith("-")]
            options = [word for word in rest[2:] if word.startswith("-")]
            return self._started_by_python((*before, rest[0], "runserver", "{host}:{port}", *options))
        if rest[0].endswith("manage.py") and rest[1:] and not _SERVING.match(rest[1]):
            return None
        filled = [self._filled(self._placed(word)) for word in rest]
        if any(unknown for _, unknown in filled):
            return None
        placed = with_address([word for word, _ in filled])
        served = served_by(Sources(self.folder.read, root=script.root), script.name)
        if (
            served
            and not PORT_READ.search(self.folder.read(script.path) or "")
            and not any("{port}" in word for word in placed)
        ):
            return self._in_its_place(served, script)
        self.target = served.target if served else ""
        self.options |= {"--workers": served.workers} if served and served.workers else {}
        found = self._started_by_python((*before, *placed))
        robyn = ROBYN if "robyn" in (self.folder.read(script.path) or "") else {}
        return replace(found, script=script.name, root=script.root, address=robyn)

    def _in_its_place(self, served: Served, script: Module) -> Current | None:
        """Return the server's command in the place of a script that starts it at a port of its own."""
        said = f"`{script.path}`, whose port is fixed: `{served.text}` in its place"
        remarks = (*served.left_out, said)
        written = replace(self.written, text=served.text, environment={}, remarks=remarks)
        found = _read(written, self.folder, ReadingAid("", self.variables, self.cpus))
        if found is None:
            return None
        lost = {f"--{one.split('`')[1].replace('_', '-')}": one for one in served.left_out}
        target = found.target or served.target
        sources = Sources(self.folder.read, root=script.root)
        module = sources.module(target.partition(":")[0])
        root = module.root if module else script.root or self._root()
        return replace(found, text=self.written.text, target=target, root=root, lost={**lost, **found.lost})

    def _sources(self) -> Sources:
        return Sources(self.folder.read, root=self._root())

    def _script(self, name: str, before: tuple[str, ...]) -> Module | None:
        """Return what Python is to run, if the folder has it: a file, a module, or what its code calls."""
        sources = self._sources()
        if before == ("-m",):
            return sources.module(f"{name}.__main__") or sources.module(name)
        if before == ("-c",):
            return sources.module(called_module(name))
        file = f"{normpath(self._placed(name)).removesuffix('.py')}.py"
        # Python searches a script's own folder first.
        root, _, stem = file.removesuffix(".py").rpartition("/")
        is_inside = not file.startswith(("/", "..")) and not self.written.place
        found = Sources(self.folder.read, root=root).module(stem) if is_inside else None
        return found if found and found.path == file else None

    def _started_by_python(self, words: Sequence[str]) -> Current:
        self.kept = ["{python}", *words]
        return self._made(self.written.source, "", ())

    def _of_paste(self, words: Sequence[str]) -> Current | None:
        """*Source*: pserve(1) of Pyramid; PasteDeploy documentation, The Config File: `use = config:...`."""
        path = self._placed(words[0]).removeprefix("./") if words else ""
        found = served_by_paste(self.folder.read(path) or "", path)
        if found is None:
            return None
        # Another name than the original's, which may lie in the folder where a person types the command.
        name = f"prony-{path.rpartition('/')[2]}"
        self.kept = ["{bin}/pserve", f"{{run_dir}}/{name}", *words[1:]]
        self.options |= {"--threads": found.threads} if found.threads else {}
        self.left_out += [f"`{one}` in {path}" for one in found.left_out]
        made = self._made(self.written.source, "", ())
        return replace(made, script=found.module, files={name: found.template})

    def _of_tool(self, program: str, words: Sequence[str]) -> Current | None:
        self.kept = ["{python}", "-m", program]
        tool = ServerCommand("", (), TOOL_ALIASES, TOOL_FLAGS, TOOL_REPLACED)
        given: list[str] = []
        for option in split_options(words, tool.aliases, tool.flags):
            if option.name:
                self._take(tool, option)
            else:
                given.append(self._filled(self._placed(option.value))[0])
                self.kept.append(given[-1])
        if program in SUBCOMMANDS and not {*given[:1]} & {*SUBCOMMANDS[program]}:
            return None
        self.kept += TOOLS[program]
        app = self.options.get("--app") or self.variables.get(f"{program.upper()}_APP", "")
        found = app_of_tool(Sources(self.folder.read, root=self._root()), program, given, app)
        self.target, self.call = (found.target, found.call) if found else ("", "")
        made = self._made(self.written.source, "", ())
        made = replace(made, root=found.root) if found else made
        return replace(made, address=ROBYN) if program == "robyn" else made


_PSGI_APP = "{app_dir}/{app}"
# Of a project's `manage.py`: other commands prepare something.
_SERVING = re.compile(r"(?:run|start|serve)$|(?:run_?)?(?:serve|gunicorn|uvicorn|waitress|daphne|hypercorn)")
UWSGI_FILES = (".ini", ".yaml", ".yml", ".json", ".xml")
_UWSGI_NAMED = ("--ini", "--yaml", "-y", "--json", "-j", "--xml", "-x")
_UVICORN_WORKER = re.compile(r"(?:uvicorn\.workers|uvicorn_worker)\..*")
_WORKER_CLASS = re.compile(
    r"sync|gthread|gevent|asgi|gunicorn\.workers\.ggevent\.GeventWorker|gunicorn\.workers\.gasgi\.ASGIWorker|"
    r"(?:uvicorn\.workers|uvicorn_worker)\.Uvicorn(?:H11)?Worker"
)


def _target(word: str) -> re.Match[str] | None:
    match = _TARGET.fullmatch(word)
    return match if match and (match["call"] is None or is_literal_call(match["call"])) else None


def _gunicorn_entry(options: Mapping[str, str]) -> str:
    worker = options.get("--worker-class", "")
    if _UVICORN_WORKER.fullmatch(worker):
        return "gunicorn-uvicorn"
    if worker == "asgi" or worker.startswith("gunicorn.workers.gasgi."):
        return "gunicorn-asgi"
    return (
        "gunicorn-gevent"
        if worker == "gevent" or worker.startswith("gunicorn.workers.ggevent.")
        else "gunicorn"
    )

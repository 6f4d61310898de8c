"""The rules of a server's entry beyond types: names that it uses exist, values that it presets are valid.

Pure. Finds all problems, each with its place; `toml_source` turns places into lines.
"""

from collections.abc import Iterable, Iterator, Set

from prony.catalog.schema.entry import (
    BoolSetting,
    BuildStep,
    ChoiceSetting,
    Conditional,
    FrontendEntry,
    HostEntry,
    IntSetting,
    ProcessEntry,
    PythonInstall,
    ServerEntry,
    ServiceEntry,
    SettingCondition,
    SystemInstall,
)
from prony.catalog.schema.expression import names_in, names_in_template, placeholders
from prony.catalog.schema.settings import (
    HTTP2,
    TLS,
    TLS_CIPHER,
    TLS_RESUMPTION,
    SettingsError,
    all_settings,
    parse_value,
    resolve,
    speaks_tls,
)
from prony.catalog.schema.toml_source import Place, Problem

PLACEHOLDERS = frozenset(["host", "port", "cpus", "run_dir", "app_dir"])
"""Placeholders of every command, besides its entry's settings and programs."""
APP_PLACEHOLDERS = frozenset(["app", "module", "attribute", "interface"])
"""Placeholders of servers and frontends: the app and its interface."""
UPSTREAM_PLACEHOLDERS = frozenset(["upstream_host", "upstream_port", "upstreams", "wire"])
"""Placeholders of frontends: the server behind it."""
TLS_PLACEHOLDERS = frozenset(["tls_certificate", "tls_key"])
"""Placeholders of what speaks TLS: the files with its certificate and its key."""


# Every default must be valid for these numbers of CPUs: from the smallest machine to a large one.
_CPUS = (1, 2, 64)

_LONGEST_FILE = 20_000


def check_entry(entry: ProcessEntry, stem: str) -> list[Problem]:
    """Return all problems of ``entry`` beyond types; ``stem`` is its file's name without the extension."""
    problems: list[Problem] = []
    if entry.name != stem:
        problems.append(Problem(("name",), entry.name, f"the file's name, `{stem}`"))
    problems.extend(_install(entry))
    problems.extend(_settings(entry))
    problems.extend(_variants(entry))
    problems.extend(_command(entry))
    problems.extend(_environment(entry))
    problems.extend(_files(entry))
    problems.extend(_templates(entry))
    match entry:
        case ServerEntry():
            problems.extend(_interfaces(entry))
            problems.extend(_editions(entry))
        case ServiceEntry():
            problems.extend(_variables(entry))
    if isinstance(entry, HostEntry):
        problems.extend(_facts(entry))
        problems.extend(_tls(entry))
    if isinstance(entry, FrontendEntry):
        problems.extend(_http2(entry))
    return problems


def _known(entry: ProcessEntry) -> frozenset[str]:
    """Return the placeholders of the entry's command, besides its settings."""
    known = _installed(entry) | PLACEHOLDERS
    if isinstance(entry, HostEntry):
        known |= APP_PLACEHOLDERS
    if isinstance(entry, FrontendEntry):
        known |= UPSTREAM_PLACEHOLDERS
    if speaks_tls(entry):
        known |= TLS_PLACEHOLDERS
    return known | ({"build"} if entry.install.build else set())


def _installed(entry: ProcessEntry) -> frozenset[str]:
    own = {"python", "bin"} if isinstance(entry.install, PythonInstall) else set()
    own |= {"prony"} if isinstance(entry.install, PythonInstall) and entry.install.prony else set()
    return frozenset(own | entry.install.programs.keys())


def _editions(entry: ServerEntry) -> Iterator[Problem]:
    """Yield the problems of the entries that the editions are, each at its edition."""
    for name, one in entry.editions.items():
        for key in one.settings.keys() - entry.settings.keys():
            yield Problem(("editions", name, "settings", key), key, "one of the entry's settings")
    for name, made in zip(entry.editions, entry.as_editions(), strict=True):
        for found in check_entry(made, made.name):
            yield Problem(("editions", name, *found.place), found.found, found.expected)


_RESERVED = (
    PLACEHOLDERS
    | APP_PLACEHOLDERS
    | UPSTREAM_PLACEHOLDERS
    | TLS_PLACEHOLDERS
    | {"python", "bin", "build", "prony", "source", HTTP2, TLS, TLS_RESUMPTION, TLS_CIPHER}
)


def _install(entry: ProcessEntry) -> Iterator[Problem]:
    install = entry.install
    for name in install.programs:
        if name in _RESERVED - {"python"}:
            yield Problem(
                ("install", "programs", name),
                name,
                "another name: this one is a placeholder of the catalogue",
            )
    programs = frozenset(install.programs)
    match install:
        case PythonInstall():
            # What installs a program shows by that.
            shown = install.imports or any(str(part).startswith("{bin}/") for part in entry.command)
            if isinstance(entry, ServerEntry) and install.requirements and not shown:
                yield Problem(("install", "imports"), "nothing", "the modules that show that it is installed")
        case SystemInstall():
            for index, text in enumerate(install.interpreter or ()):
                yield from _names(("install", "interpreter", index), text, programs)
    for index, text in enumerate(install.version or ()):
        yield from _names(("install", "version", index), text, programs)
    if install.build:
        allowed = _installed(entry) | {"source", "build"}
        allowed |= {"app_dir"} if isinstance(entry, ServiceEntry) else set()
        for index, step in enumerate(install.build.run):
            place: Place = ("install", "build", "run", index)
            texts = (
                (*step.run, *([step.stdin] if step.stdin else [])) if isinstance(step, BuildStep) else step
            )
            for text in texts:
                yield from _names(place, text, allowed)


def _tls(entry: HostEntry) -> Iterator[Problem]:
    """Yield what an entry that speaks TLS has no place for."""
    written = " ".join((*_all_texts(entry), *entry.templates.values()))
    for name in sorted(TLS_PLACEHOLDERS) if entry.tls else ():
        if name not in written:
            yield Problem((TLS,), "nothing", f"the command or a template to use `{name}`")
    spoken = entry.wires if isinstance(entry, ServerEntry) else ()
    for index, wire in enumerate(entry.tls.only if entry.tls else ()):
        if wire not in spoken:
            yield Problem((TLS, "only", index), wire, "one of the entry's `wires`")


def _http2(entry: FrontendEntry) -> Iterator[Problem]:
    """Yield what a frontend that speaks HTTP/2 to its clients does not ask for."""
    asked = (part for part in entry.command if not isinstance(part, str) and part.setting == HTTP2)
    if entry.http2 and not any(asked) and not any(HTTP2 in one for one in entry.templates.values()):
        yield Problem((HTTP2,), "nothing", f"the command or a template to ask for `{HTTP2}`")


def _interfaces(entry: ServerEntry) -> Iterator[Problem]:
    by_itself = "none" in entry.interfaces
    if by_itself and not entry.serves:
        yield Problem(("serves",), "nothing", "the built-in apps whose replies it gives by itself")
    if entry.serves and not by_itself:
        yield Problem(("serves",), ", ".join(entry.serves), "the interface `none`, or no such field")


def _variables(entry: ServiceEntry) -> Iterator[Problem]:
    for name, text in entry.variables.items():
        yield from _names(("variables", name), text, _known(entry) | entry.settings.keys())


def _templates(entry: ProcessEntry) -> Iterator[Problem]:
    known = _known(entry) | all_settings(entry).keys() | {"variables"}
    for name, text in entry.templates.items():
        place: Place = ("templates", name)
        if name in entry.files:
            yield Problem(place, name, "another name: there is a file of this one")
        try:
            asked = names_in_template(text)
        except ValueError as error:
            yield Problem(place, str(error), "a template of Jinja's")
            continue
        for unknown in sorted(asked - known):
            yield Problem(place, f"{{{{ {unknown} }}}}", f"one of the names {', '.join(sorted(known))}")


def _names(place: Place, text: str, known: Set[str]) -> Iterator[Problem]:
    try:
        used = placeholders(text)
    except ValueError:
        yield Problem(place, text, "each brace to belong to a placeholder, `{name}`")
        return
    for name in sorted(used - known):
        yield Problem(place, f"{{{name}}}", f"one of the placeholders {', '.join(sorted(known)) or '(none)'}")


def _settings(entry: ProcessEntry) -> Iterator[Problem]:
    for key, setting in entry.settings.items():
        place: Place = ("settings", key)
        if key in _RESERVED or key in entry.install.programs:
            yield Problem(place, key, "another name: this one is a placeholder of the catalogue")
        if isinstance(setting, IntSetting) and setting.min > setting.max:
            yield Problem((*place, "max"), setting.max, f"at least `min`, {setting.min}")
        elif setting.default is not None:
            for cpus in _CPUS:
                try:
                    parse_value(key, setting, setting.default, cpus)
                except SettingsError as error:
                    yield Problem((*place, "default"), error.found, error.expected)
                    break


def _variants(entry: ProcessEntry) -> Iterator[Problem]:
    for name, variant in entry.variants.items():
        for key, value in variant.settings.items():
            try:
                for cpus in _CPUS:
                    resolve(entry, {key: value}, cpus)
            except SettingsError as error:
                if error.key == key:
                    yield Problem(("variants", name, "settings", key), error.found, error.expected)


def _command(entry: ProcessEntry) -> Iterator[Problem]:
    optional = {key for key, setting in entry.settings.items() if setting.default is None}
    for index, argument in enumerate(entry.command):
        place: Place = ("command", index)
        match argument:
            case str():
                yield from _text(entry, place, argument, without=optional)
            case Conditional():
                yield from _condition(entry, (*place, "if"), argument)
                for text in argument.then:
                    yield from _text(entry, (*place, "then"), text, without=optional - {argument.setting})
                for text in argument.otherwise:
                    yield from _text(entry, (*place, "else"), text, without=optional)


def _environment(entry: ProcessEntry) -> Iterator[Problem]:
    optional = {key for key, setting in entry.settings.items() if setting.default is None}
    for name, text in entry.environment.items():
        yield from _text(entry, ("environment", name), text, without=optional)


def _text(entry: ProcessEntry, place: Place, text: str, without: Iterable[str]) -> Iterator[Problem]:
    problems = list(_names(place, text, _known(entry) | all_settings(entry).keys()))
    yield from problems
    if not problems:
        for name in sorted(placeholders(text).intersection(without)):
            yield Problem(
                place, f"{{{name}}}", f'an `if = "{name}"` around it, since this setting has no default'
            )


def _condition(entry: ProcessEntry, place: Place, condition: SettingCondition) -> Iterator[Problem]:
    if condition.also is not None:
        yield from _condition(entry, (*place[:-1], "and", "if"), condition.also)
    settings = all_settings(entry)
    setting = settings.get(condition.setting)
    if setting is None:
        known = ", ".join(sorted(settings)) or "none"
        yield Problem(place, condition.setting, f"one of the settings: {known}")
    elif condition.above is not None and not isinstance(setting, IntSetting):
        yield Problem(
            (*place[:-1], "above"), condition.above, f"`is`: `{condition.setting}` is no whole number"
        )
    elif condition.value is not None:
        fits = isinstance(condition.value, bool) == isinstance(setting, BoolSetting)
        if isinstance(setting, ChoiceSetting):
            fits = condition.value in setting.choices
        if not fits:
            yield Problem(
                (*place[:-1], "is"), condition.value, f"a value of the setting `{condition.setting}`"
            )


def _facts(entry: HostEntry) -> Iterator[Problem]:
    concurrency = entry.facts.concurrency
    yield from _expression(entry, ("facts", "backlog", "value"), entry.facts.backlog.value)
    yield from _expression(entry, ("facts", "concurrency", "processes"), concurrency.processes)
    yield from _expression(entry, ("facts", "concurrency", "slots"), concurrency.slots)
    for index, fact in enumerate(entry.facts.keep_alive):
        yield from _expression(entry, ("facts", "keep_alive", index, "idle_s"), fact.idle_s)
        if fact.when:
            yield from _condition(entry, ("facts", "keep_alive", index, "when", "if"), fact.when)
    if entry.facts.keep_alive[-1].when:
        place = ("facts", "keep_alive", len(entry.facts.keep_alive) - 1)
        yield Problem(place, "a condition", "the last one to hold always, without `when`")


def _expression(entry: HostEntry, place: Place, value: int | str | None) -> Iterator[Problem]:
    if not isinstance(value, str):
        return
    try:
        used = names_in(value)
    except ValueError as error:
        yield Problem(place, value, str(error).partition("expected ")[2])
        return
    numbers = {
        key
        for key, setting in entry.settings.items()
        if isinstance(setting, IntSetting) and setting.default is not None
    }
    for name in sorted(used - numbers - {"cpus"}):
        known = ", ".join(sorted(numbers | {"cpus"}))
        yield Problem(place, f"{{{name}}}", f"one of the whole numbers {known}")


def _files(entry: ProcessEntry) -> Iterator[Problem]:
    written = " ".join(_all_texts(entry))
    for name, text in {**entry.files, **entry.templates}.items():
        table = "files" if name in entry.files else "templates"
        if len(text) > _LONGEST_FILE:
            yield Problem((table, name), f"{len(text)} characters", f"at most {_LONGEST_FILE}")
        if f"{{run_dir}}/{name}" not in written:
            yield Problem((table, name), name, f"the command to use it, as `{{run_dir}}/{name}`")


def _all_texts(entry: ProcessEntry) -> Iterator[str]:
    yield from entry.environment.values()
    for argument in entry.command:
        if isinstance(argument, str):
            yield argument
        else:
            yield from (*argument.then, *argument.otherwise)

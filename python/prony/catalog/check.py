"""What a server's entry must keep beyond types: the names that it uses exist, the values that it presets fit.

Pure. Finds all problems, each with the place it belongs to; `toml_source` turns places into lines.
"""

from collections.abc import Iterable, Iterator

from prony.catalog.entry import BoolSetting, ChoiceSetting, Condition, Conditional, IntSetting, ServerEntry
from prony.catalog.expression import names_in
from prony.catalog.launch import PLACEHOLDERS
from prony.catalog.settings import SettingsError, parse_value, resolve
from prony.catalog.template import placeholders
from prony.catalog.toml_source import Place, Problem

__all__ = ["check_entry"]

# The CPU sets that every default must fit: from the smallest machine to a large one.
_CPUS = (1, 2, 64)

_LONGEST_FILE = 20_000


def check_entry(entry: ServerEntry, stem: str) -> list[Problem]:
    """Return all that is wrong in ``entry`` beyond types; ``stem`` is its file's name without the ending."""
    problems: list[Problem] = []
    if entry.name != stem:
        problems.append(Problem(("name",), entry.name, f"the file's name, `{stem}`"))
    problems.extend(_settings(entry))
    problems.extend(_variants(entry))
    problems.extend(_command(entry))
    problems.extend(_environment(entry))
    problems.extend(_facts(entry))
    problems.extend(_files(entry))
    return problems


def _settings(entry: ServerEntry) -> Iterator[Problem]:
    for key, setting in entry.settings.items():
        place: Place = ("settings", key)
        if key in PLACEHOLDERS:
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


def _variants(entry: ServerEntry) -> Iterator[Problem]:
    for name, variant in entry.variants.items():
        for key, value in variant.settings.items():
            try:
                for cpus in _CPUS:
                    resolve(entry, {key: value}, cpus)
            except SettingsError as error:
                if error.key == key:
                    yield Problem(("variants", name, "settings", key), error.found, error.expected)


def _command(entry: ServerEntry) -> Iterator[Problem]:
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


def _environment(entry: ServerEntry) -> Iterator[Problem]:
    optional = {key for key, setting in entry.settings.items() if setting.default is None}
    for name, text in entry.environment.items():
        yield from _text(entry, ("environment", name), text, without=optional)


def _text(entry: ServerEntry, place: Place, text: str, without: Iterable[str]) -> Iterator[Problem]:
    try:
        used = placeholders(text)
    except ValueError:
        yield Problem(place, text, "each brace to belong to a placeholder, `{name}`")
        return
    for name in sorted(used - PLACEHOLDERS - entry.settings.keys()):
        known = ", ".join(sorted(PLACEHOLDERS | entry.settings.keys()))
        yield Problem(place, f"{{{name}}}", f"one of the placeholders {known}")
    for name in sorted(used.intersection(without)):
        yield Problem(
            place, f"{{{name}}}", f'an `if = "{name}"` around it, since this setting has no default'
        )


def _condition(entry: ServerEntry, place: Place, condition: Condition) -> Iterator[Problem]:
    setting = entry.settings.get(condition.setting)
    if setting is None:
        known = ", ".join(sorted(entry.settings)) or "none"
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


def _facts(entry: ServerEntry) -> Iterator[Problem]:
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


def _expression(entry: ServerEntry, place: Place, value: int | str | None) -> Iterator[Problem]:
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


def _files(entry: ServerEntry) -> Iterator[Problem]:
    written = " ".join(_all_texts(entry))
    for name, text in entry.files.items():
        if len(text) > _LONGEST_FILE:
            yield Problem(("files", name), f"{len(text)} characters", f"at most {_LONGEST_FILE}")
        if f"{{run_dir}}/{name}" not in written:
            yield Problem(("files", name), name, f"the command to use it, as `{{run_dir}}/{name}`")


def _all_texts(entry: ServerEntry) -> Iterator[str]:
    yield from entry.environment.values()
    for argument in entry.command:
        if isinstance(argument, str):
            yield argument
        else:
            yield from (*argument.then, *argument.otherwise)

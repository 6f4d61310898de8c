"""What the configuration files of servers say, read and never run. Pure.

>>> python_values("workers = multiprocessing.cpu_count() * 2 + 1", 2, {})
{'workers': '5'}
"""

import ast
import json
import operator
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from configparser import Error as ConfigError
from configparser import RawConfigParser
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

# What a configuration file may say and no option of a command takes back.
# No setting is larger; a product of products would take all time.
_MOST = 2**63
# No file has more; who names a list in a list in a list has each of them once.
_MOST_VALUES = 20_000
_MAY_BE_EMPTY = ("get", "getenv", "cpu_count")
AS_IT_IS = frozenset(
    {"daemon", "pidfile", "certfile", "keyfile", "user", "group", "accesslog", "errorlog", "chdir"}
)
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def python_values(text: str, cpus: int, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the plain values that a configuration in Python assigns; of one that is computed otherwise, by a
    condition or in another file, an empty text. It is read, never run.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                known = _Known(cpus, variables, found).value(value)
                found[name] = "" if known is None else str(known)
            case _:
                found |= dict.fromkeys(_bound(statement), "")
    return found


# Of Gunicorn's: what another file may say as well.
_ELSEWHERE = ("workers", "threads", "worker_class")


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of another kind gives a value, or may: a loop, a condition."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=other):
                yield from (one for one in _ELSEWHERE if name == "*" or one == (other or name))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a value may ask for: the number of CPUs, variables, and names that were assigned before."""

    cpus: int
    variables: Mapping[str, str]
    assigned: Mapping[str, str]

    def value(self, node: ast.expr) -> int | str | None:
        """Return the value of a constant, a sum or product, a number of CPUs, or a variable with a default;
        None: it is computed otherwise.
        """
        match node:
            case ast.Constant(value=str() | int() as value):
                return value
            case ast.Name(id=name):
                return self.assigned.get(name) or None
            case ast.BinOp(left=left, op=op, right=right):
                return self._computed(type(op), [self.value(left), self.value(right)])
            case ast.BoolOp(op=ast.Or(), values=[ast.Call(func=ast.Attribute(attr=name)) as first, second]):
                # What is not set, or not known, is empty.
                return (self.value(first) or self.value(second)) if name in _MAY_BE_EMPTY else None
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=given):
                return self._called(name, given)
        return None

    def _computed(self, kind: type[ast.operator], pair: list[int | str | None]) -> int | None:
        apply = _OPERATORS.get(kind)
        numbers = [int(one) for one in pair if one is not None and str(one).isdecimal()]
        if apply is None or len(numbers) < 2 or (kind is ast.FloorDiv and not numbers[1]):
            return None
        result = apply(*numbers)
        return result if abs(result) < _MOST else None

    def _called(self, name: str, given: list[ast.expr]) -> int | str | None:
        match name, given:
            case "cpu_count", []:
                return self.cpus
            case (("int" | "str"), [inner]):
                return self.value(inner)
            case (("min" | "max"), [_, _]):
                pair = [str(self.value(one)) for one in given]
                numbers = [int(one) for one in pair if one.isdecimal()]
                return (min(numbers) if name == "min" else max(numbers)) if len(numbers) == 2 else None
            case (("get" | "getenv"), [ast.Constant(value=str() as variable), *usual]):
                return self.variables.get(variable) or (self.value(usual[0]) if usual else None)
        return None


def toml_values(text: str) -> dict[str, str]:
    """Return the texts and numbers at the top of a file in TOML; none of one that cannot be read."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {name: str(value) for name, value in found.items() if isinstance(value, str | int)}


def uwsgi_options(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each option in the section `uwsgi` of a file, by its name's ending; none of a
    file that cannot be read. An option that stands alone has the value `true`.

    *Source*: uWSGI documentation, Configuring uWSGI.

    >>> list(uwsgi_options("uwsgi.yaml", "uwsgi:\\n  http-socket: :8000\\n  master: true"))
    [('http-socket', ':8000'), ('master', 'true')]
    """
    import yaml

    try:
        match path.rpartition(".")[2]:
            case "ini":
                yield from _of_ini(text)
            case "xml":
                yield from _of_xml(text)
            case "json":
                yield from _of_table(json.loads(text))
            case _:
                # Each value as it is written: `:8000`, `true`.
                yield from _of_table(yaml_document(text, yaml.BaseLoader))
    except (ValueError, SyntaxError, RecursionError, yaml.YAMLError):
        return


# *Source*: uWSGI documentation, Configuring uWSGI, Placeholders and Magic variables.
_PLACE = re.compile(r"%\(([\w-]+)\)")
_SETTING_ONE = ("set-placeholder", "set-ph", "set")
_OTHERS = frozenset({"--processes", "--workers", "--threads", "--module", "--file", "--harakiri"})
_LONGEST_VALUE = 500


def filled_options(
    options: Iterable[tuple[str, str]], cpus: int, known: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield a file's options with the values of those above in their place, and the number of CPUs; without
    those that are only there to be named by others, and no option that is ``known``.

    >>> options = [("site", "shop"), ("module", "%(site).wsgi:app"), ("processes", "%k")]
    >>> list(filled_options(options, 2, {"--module"}))
    [('module', 'shop.wsgi:app'), ('processes', '2')]
    """
    read = list(options)
    named = {name for _, value in read for name in _PLACE.findall(value)}
    values: dict[str, str] = {}
    for option, written in read:
        name, value = option, written
        if "%" in written:
            filled = _PLACE.sub(lambda match: values.get(match[1], match[0]), written[:_LONGEST_VALUE])
            value = filled.replace("%k", str(cpus))[:_LONGEST_VALUE]
        if name in _SETTING_ONE and "=" in value:
            name, _, value = value.partition("=")
            named.add(name)
        values[name] = value
        if name not in named or f"--{name}" in {*known, *_OTHERS}:
            yield name, value


def yaml_document(text: str, loader: "type[yaml.BaseLoader | yaml.SafeLoader]") -> object:
    """Return what a document in YAML has, read by a ``loader`` of PyYAML's that makes plain values.

    *Errors*: yaml.YAMLError, also for one whose values, with all that it repeats by name, are more than a
    file's; ValueError; RecursionError.

    >>> import yaml
    >>> yaml_document("a: &x [1, true]\\nb: *x", yaml.SafeLoader)
    {'a': [1, True], 'b': [1, True]}
    """
    import yaml

    class Loader(loader):  # type: ignore[misc, valid-type]
        """Counts values, those that are named again too."""

        def __init__(self, stream: str) -> None:
            super().__init__(stream)
            self._values, self._named = 0, dict[int, int]()

        def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
            before, is_named = self._values, self.check_event(yaml.AliasEvent)
            node = super().compose_node(parent, index)
            # Who has itself has no end.
            self._values += self._named.get(id(node), _MOST_VALUES) if is_named else 1
            if self._values >= _MOST_VALUES:
                raise yaml.YAMLError("too many values")
            self._named[id(node)] = self._values - before
            return node

    return yaml.load(text, Loader=Loader)  # noqa: S506 - makes plain values


def yaml_table(text: str | None) -> Mapping[str, object]:
    """Return the table of a text in YAML; empty for what is none."""
    import yaml

    try:
        document = yaml_document(text, yaml.SafeLoader) if text else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _of_ini(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        name, equals, value = (part.strip() for part in line.partition("="))
        if section == "uwsgi" and equals and not name.startswith(("#", ";")):
            yield name, value


def _of_xml(text: str) -> Iterator[tuple[str, str]]:
    from xml.etree import ElementTree

    # Expat limits how far entities may grow; `ParseError` is a SyntaxError.
    root = ElementTree.fromstring(text)  # noqa: S314
    section = root if root.tag == "uwsgi" else root.find("uwsgi")
    for option in () if section is None else section:
        yield option.tag, (option.text or "").strip() or "true"


def _of_table(document: object) -> Iterator[tuple[str, str]]:
    section = document.get("uwsgi") if isinstance(document, dict) else None
    for name, value in section.items() if isinstance(section, dict) else ():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int):
                yield str(name), str(one).lower() if isinstance(one, bool) else str(one)


# --- PasteDeploy ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PasteServer:
    """What an ini file of PasteDeploy starts. ``template``: one that starts the same at our address, of which
    the original is below ``app_dir``. ``module``: the app's, or empty; ``threads``: of Waitress.
    """

    template: str
    module: str
    threads: str
    left_out: tuple[str, ...]


def served_by_paste(text: str, path: str) -> PasteServer | None:
    """Return what the ini file at ``path`` starts with its main server; None: it has none.

    *Source*: PasteDeploy documentation, The Config File; Waitress, Arguments; pserve(1).

    >>> found = served_by_paste("[server:main]\\nuse = egg:waitress#main\\nlisten = *:6543", "live.ini")
    >>> found.template.splitlines()[-1], found.left_out
    ('listen = {{ host }}:{{ port }}', ('listen = *:6543',))
    """
    ini = RawConfigParser(strict=False)
    try:
        ini.read_string(text)
    except ConfigError:
        return None
    # What is filled in below must end no line of it.
    if not ini.has_section("server:main") or not re.fullmatch(r"[\w./-]+", path):
        return None
    server = dict(ini["server:main"])
    app = next((dict(ini[name]) for name in ("app:main", "pipeline:main") if ini.has_section(name)), {})
    is_waitress = "waitress" in server.get("use", "")
    apart = bool(server.keys() & {"host", "port"}) or not is_waitress
    address = "host = {{ host }}\nport = {{ port }}" if apart else "listen = {{ host }}:{{ port }}"
    origin = f"use = config:{{{{ app_dir }}}}/{path}"
    template = f"[app:main]\n{origin}\n\n[server:main]\n{origin}\n{address}\n"
    used = app.get("use", "").removeprefix("call:").removeprefix("egg:")
    left = [f"{key} = {server[key]}" for key in ("listen", "host", "port") if key in server]
    logged = ["[loggers]"] if ini.has_section("loggers") else []
    threads = server.get("threads", "4") if is_waitress else ""
    return PasteServer(template, re.split("[#:]", used)[0], threads, (*left, *logged))

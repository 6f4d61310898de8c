"""The catalogue as documents: a table of all servers, the declarations of one, and the results of checks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prony.catalog.install.status import installed_versions, status
from prony.catalog.install.system import InstallAdvice, ServerNeeds
from prony.catalog.schema.entry import (
    Caveat,
    FrontendEntry,
    HostEntry,
    IntSetting,
    ProcessEntry,
    PythonInstall,
    ServerEntry,
    Setting,
    SettingCondition,
    SystemInstall,
)
from prony.catalog.schema.expression import calculate, names_in
from prony.catalog.schema.settings import all_settings, holds
from prony.core.users import resolve_user
from prony.figures.account import RequestClass
from prony.model.address import Wire
from prony.model.json_codec import Json
from prony.model.subject import Availability, AvailabilityKind, Interface
from prony.report.document import (
    Block,
    Column,
    Command,
    Document,
    Entry,
    Notes,
    Paragraph,
    Section,
    Table,
    Tone,
)
from prony.report.forms import as_typed, count
from prony.report.text import EMPTY, Figure, Name, Part, Quote, Text, Words, joined, pointer, text
from prony.report.words import availability_words, ending_words
from prony.study.catalog_check import ServerCheck


def servers_document(entries: Sequence[ServerEntry], others: Sequence[ProcessEntry] = ()) -> Document:
    """Return the names of servers by interface, and by whether they can be measured on this machine.

    ``others``: the frontends and services; the JSON is a list of all, in this order.
    """
    kinds = dict.fromkeys(kind for entry in entries for kind in entry.interfaces)
    named = {Interface.NONE: "Without an app", Interface.RACK: "Rack"}
    titles = {kind: named.get(kind, kind.upper()) for kind in kinds}
    groups: list[tuple[str, list[ProcessEntry]]] = [
        (titles[kind], [one for one in entries if kind in one.interfaces]) for kind in kinds
    ]
    groups.append(("Frontends (server@frontend)", [one for one in others if isinstance(one, FrontendEntry)]))
    groups.append(("Services", [one for one in others if not isinstance(one, FrontendEntry)]))
    sections = [Section(name, (Notes(tuple(_by_state(found))),)) for name, found in groups if found]
    words = "With *: it has variants. `prony servers NAME` names them, with version and settings."
    return Document("Servers", (*sections, Section("", (Paragraph(words, Tone.QUIET),))))


def _by_state(entries: Sequence[ProcessEntry]) -> Iterator[tuple[str, Text]]:
    """Yield the entries of each state; of one that lacks something, what it needs."""
    for kind in AvailabilityKind:
        found = [(entry, here) for entry in entries for here in [status(entry)] if here.kind is kind]
        names = [
            text("{}{}{}", Name(entry.name), "*" if entry.variants else "", _lacks(here))
            for entry, here in found
        ]
        if names:
            yield "", text("{}: {}", Name(kind.value), joined(names))


def _lacks(here: Availability) -> Text:
    return EMPTY if here.is_here else text(" [{}]", Name(availability_words(here)))


def server_document(entry: ProcessEntry, at: str = "", *, here: bool = True) -> Document:
    """Return everything that the catalogue declares about one server, frontend or service.

    ``at``: where the JSON has the entry. ``here`` false: without facts of this machine, and with the source
    of each setting.
    """
    sections = [Section("", (Notes.of(_lines(entry, at, here=here)),))]
    if isinstance(entry, HostEntry):
        sections += _facts(entry, at + pointer("facts"))
    if entry.settings:
        sections.append(Section("Settings", _settings(entry, at, with_sources=not here)))
    if entry.variants:
        items = tuple(("", line) for line in _variants(entry, at))
        sections.append(Section("Variants", (Notes(items),)))
    title = Quote(entry.title, at + pointer("title"))
    named = entry.title.lower().startswith(f"{entry.name}:")
    words = text("{}", title) if named else text("{}: {}", Name(entry.name), title)
    return Document(words, tuple(sections))


def _lines(entry: ProcessEntry, at: str, *, here: bool) -> Iterator[Text]:
    installed = installed_versions([entry], resolve_user()) if here else {}
    version = Quote(installed.get(entry.name) or _pinned(entry), at + pointer("version"))
    facts = (Name(fact) for fact in (entry.licence, entry.upstream) if fact)
    yield joined([text("version {}", version), *facts])
    needs = [
        text("{} ({})", joined(map(Name, names)), Name(system)) for system, names in entry.needs if names
    ]
    if needs:
        yield text("needs system packages: {}", joined(needs, "; "))
    state = text("; here: {}", Name(availability_words(status(entry)))) if here else ""
    yield text("{}{}", Name(_spoken(entry)), state)
    if entry.remark:
        yield text("{}", Quote(entry.remark, at + pointer("remark")))


def _variants(entry: ProcessEntry, at: str) -> Iterator[Text]:
    for name, item in entry.variants.items():
        title = Quote(item.title, at + pointer("variants", name, "title"))
        yield text("{}-{}: {}", Name(entry.name), Name(name), title)


def _spoken(entry: ProcessEntry) -> str:
    match entry:
        case ServerEntry():
            by_itself = f", gives the replies of {', '.join(entry.serves)} itself" if entry.serves else ""
            return f"speaks {', '.join(entry.interfaces)} over {', '.join(entry.wires)}{by_itself}"
        case FrontendEntry():
            return f"passes requests on over {', '.join(entry.forwards)}"
    return "runs beside a server"


def _facts(entry: HostEntry, at: str) -> Iterator[Section]:
    facts = entry.facts
    rows = (
        _backlog(entry, at + pointer("backlog")),
        *(_kept(entry, k, at + pointer("keep_alive", k)) for k in range(len(facts.keep_alive))),
        *_concurrency(entry, at + pointer("concurrency")),
    )
    titles = ("fact", "value", "source")
    yield Section("Facts", (Table(tuple(Column(title, text=True) for title in titles), rows),))
    if facts.caveats:
        items = tuple(("", _caveat(one, at + pointer("caveats", k))) for k, one in enumerate(facts.caveats))
        yield Section("Caveats", (Notes(items),))


def _caveat(caveat: Caveat, at: str) -> Text:
    return text(
        "{} ({})", Quote(caveat.text, at + pointer("text")), Quote(caveat.source, at + pointer("source"))
    )


def _fact(name: Words, value: Words, source: Quote) -> tuple[Entry, ...]:
    return Entry(name), Entry(value), Entry.of(source, Tone.QUIET)


def _backlog(entry: HostEntry, at: str) -> tuple[Entry, ...]:
    fact = entry.facts.backlog
    value: Words = "the kernel's limit"
    if fact.value is not None:
        value = _valued(entry, _Formula(fact.value), at + pointer("value"))
    return _fact("listen queue", value, Quote(fact.source, at + pointer("source")))


def _concurrency(entry: HostEntry, at: str) -> Iterator[tuple[Entry, ...]]:
    fact = entry.facts.concurrency
    processes = _valued(entry, _Formula(fact.processes), at + pointer("processes"))
    yield _fact("processes", processes, Quote(fact.source, at + pointer("source")))
    slots: Words = "no fixed number"
    if fact.slots is not None:
        slots = _valued(entry, _Formula(fact.slots), at + pointer("slots"))
    yield _fact("requests at once", slots, Quote(fact.text, at + pointer("text")))


@dataclass(frozen=True, slots=True)
class _Formula:
    """A number, or an expression of settings, under a condition."""

    value: int | str
    when: SettingCondition | None = None

    def by_default(self, entry: HostEntry) -> int | None:
        """Return the number under the entry's default settings; None if a default is the server's own,
        depends on the machine, or does not meet the condition.
        """
        if not isinstance(self.value, str):
            return self.value
        defaults = {name: setting.default for name, setting in entry.settings.items()}
        numbers = {name: default for name, default in defaults.items() if isinstance(default, int)}
        if self.when is not None and not holds(self.when, numbers):
            numbers.pop(self.when.setting, None)
        return calculate(self.value, numbers) if names_in(self.value) <= numbers.keys() else None


def _valued(entry: HostEntry, formula: _Formula, at: str, unit: str = "") -> Text:
    """Return a fact under the entry's default settings, and the settings that it depends on: ``2048
    (backlog)``; only the settings where it has no number. ``at``: where the JSON has the fact.
    """
    number = formula.by_default(entry)
    if not isinstance(formula.value, str):
        return text(f"{{}}{unit}", Figure(formula.value, as_typed, at))
    words = Name(formula.value.replace("{", "").replace("}", "").replace("*", " × "))
    if number is None:
        return text(f"{{}}{unit}", words)
    return text(f"{{}}{unit} ({{}})", Figure(number, as_typed, f"{at}_by_default"), words)


def _by_default(entry: HostEntry) -> Json:
    """Return the facts with what is calculated of them beside them, as data."""
    facts = entry.facts
    found: Json = facts.model_dump(mode="json", by_alias=True)
    found["backlog"]["value_by_default"] = _number(entry, facts.backlog.value)
    for name in ("processes", "slots"):
        value = getattr(facts.concurrency, name)
        found["concurrency"][f"{name}_by_default"] = _number(entry, value)
    for k, one in enumerate(facts.keep_alive):
        found["keep_alive"][k]["idle_s_by_default"] = _number(entry, one.idle_s, one.when)
    return found


def _number(entry: HostEntry, value: int | str | None, when: SettingCondition | None = None) -> int | None:
    return None if value is None else _Formula(value, when).by_default(entry)


def _when(condition: SettingCondition, at: str) -> Text:
    setting = Name(condition.setting)
    if condition.above is not None:
        return text(
            "keep-alive if {} is above {}", setting, Figure(condition.above, as_typed, at + pointer("above"))
        )
    if condition.value is None:
        return text("keep-alive if {}", setting)
    return text("keep-alive if {} is {}", setting, Name(str(condition.value)))


def _kept(entry: HostEntry, k: int, at: str) -> tuple[Entry, ...]:
    fact = entry.facts.keep_alive[k]
    name: Words = _when(fact.when, at + pointer("when")) if fact.when else "keep-alive"
    value = text("on" if fact.on else "off")
    if fact.on and fact.idle_s is not None:
        idle = _valued(entry, _Formula(fact.idle_s, fact.when), at + pointer("idle_s"), " s")
        value = text("on, idle for {}", idle)
    return _fact(name, value, Quote(fact.source, at + pointer("source")))


def _settings(entry: ProcessEntry, at: str, *, with_sources: bool) -> tuple[Block, ...]:
    titles = ("setting", "default", "values", "meaning", *(("source",) if with_sources else ()))
    columns = tuple(Column(title, text=True) for title in titles)
    rows = tuple(
        _setting(name, setting, at + pointer("settings", name))[: len(titles)]
        for name, setting in all_settings(entry).items()
    )
    first = next(iter(entry.settings))
    hint = text("Change one with --set {}=VALUE.", Name(f"{entry.name}.{first}"))
    return Table(columns, rows), Paragraph(hint, Tone.QUIET)


def _setting(name: str, setting: Setting, at: str) -> tuple[Entry, ...]:
    return (
        Entry.of(Name(name)),
        Entry(_default(setting, at + pointer("default"))),
        Entry(_range(setting, at)),
        Entry.of(Quote(setting.doc, at + pointer("doc"))),
        Entry.of(Quote(setting.source, at + pointer("source")), Tone.QUIET),
    )


def _default(setting: Setting, at: str) -> Text:
    match setting.default:
        case None:
            return text("the server's")
        case bool(on):
            return text(str(on).lower())
        case int(number):
            return text("{}", Figure(number, as_typed, at))
        case words:
            return text("{}", Quote(words, at))


def _range(setting: Setting, at: str) -> Text:
    if isinstance(setting, IntSetting):
        least = Figure(setting.min, as_typed, at + pointer("min"))
        return text("{} to {}", least, Figure(setting.max, as_typed, at + pointer("max")))
    if setting.type == "choice":
        return joined(map(Name, setting.choices))
    return text({"bool": "true, false"}.get(setting.type, "text"))


def _pinned(entry: ProcessEntry) -> str:
    match entry.install:
        case SystemInstall():
            return "the system's"
        case PythonInstall(requirements=()):
            return "the system's" if entry.install.build else "Python's own"
        case PythonInstall(requirements=requirements):
            return requirements[0].partition("==")[2] or requirements[0]


def server_json(entry: ProcessEntry) -> Json:
    """Return everything that the catalogue declares about one server, as data, with its status here."""
    found: Json = entry.model_dump(mode="json", by_alias=True, exclude={"files", "templates"})
    version = installed_versions([entry], resolve_user()).get(entry.name) or _pinned(entry)
    found["settings"] = {
        name: setting.model_dump(mode="json", by_alias=True) for name, setting in all_settings(entry).items()
    }
    if isinstance(entry, HostEntry):
        found["facts"] = _by_default(entry)
    return {**found, "version": version, "status": availability_words(status(entry))}


# --- checks -----------------------------------------------------------------------------------------------


def checks_document(checks: Sequence[ServerCheck]) -> Document:
    """Return a table of the checks; for each failure the reason and the last lines of the log."""
    placed = [(item, pointer(k)) for k, item in enumerate(checks)]
    sections = [Section("", (_checks_table(placed),))]
    odd = [(item, at) for item, at in placed if item.passed and item.failures]
    if odd:
        items = tuple(("", text("{}: {}", _checked(item), _failure_words(item, at))) for item, at in odd)
        sections.append(Section("Requests that failed", (Notes(items),)))
    failed = [(item, at) for item, at in placed if not item.passed]
    sections += [Section(text("{}", _checked(item)), tuple(_failed(item, at))) for item, at in failed]
    sections.append(Section("", (_summary(checks),)))
    return Document("Servers, checked", tuple(sections))


def _summary(checks: Sequence[ServerCheck]) -> Paragraph:
    total = Figure(len(checks), count, "")
    failed = [_checked(item) for item in checks if not item.passed]
    if failed:
        return Paragraph(text("Of {} checked, these failed: {}.", total, joined(failed)), Tone.BAD)
    return Paragraph(text("All passed: {}.", total), Tone.GOOD)


def _failed(item: ServerCheck, at: str) -> Iterator[Block]:
    reason = Quote(item.reason, at + pointer("reason"))
    yield Paragraph(text("failed at {}: {}", item.stage or "", reason), Tone.BAD)
    if item.failures:
        yield Paragraph(_failure_words(item, at))
    lines = tuple(("", text("{}", Name(line))) for line in item.log.splitlines())
    yield Notes(lines) if lines else Paragraph("It wrote no output.", Tone.QUIET)


_CHECKED = ("server", "interface", "wire", "ready s", "ok", "failed", "passed", "version", "stopped")
_COUNTS = ("ready s", "ok", "failed")


def _checks_table(checks: Sequence[tuple[ServerCheck, str]]) -> Table:
    columns = tuple(Column(title, text=title not in _COUNTS) for title in _CHECKED)
    return Table(columns, tuple(_check_row(item, at) for item, at in checks))


def _check_row(item: ServerCheck, at: str) -> tuple[Entry, ...]:
    verdict = Entry("yes", Tone.GOOD) if item.passed else Entry(f"no: {item.stage}", Tone.BAD)
    ready: Part = "—"
    if item.ready_s is not None:
        ready = Figure(item.ready_s, _hundredths, at + pointer("ready_s"))
    version: Part = Quote(item.version, at + pointer("version")) if item.version else "—"
    return (
        *(Entry.of(Name(name)) for name in (item.server, item.interface, _wire(item))),
        Entry.of(ready),
        Entry(_counted(item, item.ok, at + pointer("requests", "ok"))),
        Entry(_counted(item, item.failed, at + pointer("requests", "failed"))),
        verdict,
        Entry.of(version),
        Entry(_stopped(item, at + pointer("stopped"))),
    )


def _counted(item: ServerCheck, requests: int, at: str) -> Text:
    return text("{}", Figure(requests, count, at)) if item.ok + item.failed else text("—")


def _hundredths(value_s: float) -> str:
    return f"{value_s:.2f}"


def _stopped(item: ServerCheck, at: str) -> Text:
    if item.stopped is None:
        return text("—")
    took = Figure(item.stopped.seconds, _hundredths, at + pointer("seconds"))
    words = text("{}, {} s", item.stopped.how, took)
    if not item.stopped.leftovers:
        return words
    return text("{}, {} more killed", words, Figure(item.stopped.leftovers, count, at + pointer("killed")))


def _checked(item: ServerCheck) -> Name:
    return Name(f"{item.server} ({', '.join((item.interface, *_around(item)))})")


def _wire(item: ServerCheck) -> str:
    return ", ".join((item.wire, *_around(item)))


def _around(item: ServerCheck) -> Iterator[str]:
    """Yield what clients speak, where the wire does not say it."""
    if item.clients is Wire.HTTP2 and item.wire is not Wire.HTTP2:
        yield "HTTP/2"
    if item.tls:
        yield "TLS"


def _failure_words(item: ServerCheck, at: str) -> Text:
    return joined(
        (text("{} {}", _failures(item, ending, at), Name(ending_words(ending))) for ending in item.failures),
        "; ",
    )


def _failures(item: ServerCheck, ending: RequestClass, at: str) -> Figure:
    return Figure(item.failures[ending], count, at + pointer("requests", "failures", ending.key))


def check_json(item: ServerCheck) -> Json:
    """Return the result of a check, as data."""
    stop = item.stopped
    failures = {ending.key: count for ending, count in item.failures.items()}
    return {
        "server": item.server,
        "interface": item.interface,
        "wire": item.wire,
        "clients": item.clients,
        "tls": item.tls,
        "version": item.version,
        "interpreter": item.interpreter,
        "ready_s": item.ready_s,
        "requests": {"ok": item.ok, "failed": item.failed, "failures": failures},
        "stopped": stop and {"how": stop.how, "seconds": stop.seconds, "killed": stop.leftovers},
        "passed": item.passed,
        "stage": item.stage,
        "reason": item.reason or None,
        "log": item.log or None,
    }


# --- what is missing --------------------------------------------------------------------------------------


def advice_document(advice: InstallAdvice) -> Document:
    """Return which system packages servers need, which are missing, and the command that installs them."""
    needy = [item for item in advice.servers if item.needs]
    blocks: list[Block] = []
    if needy:
        columns = (Column("server", text=True), Column("needs", text=True), Column("missing", text=True))
        blocks.append(Table(columns, tuple(_needs_row(item) for item in needy)))
    unknown = [item.server for item in needy if not item.known]
    if unknown:
        words = text(
            "For {} only the names of Debian's packages are known; look for similar packages here.",
            joined(map(Name, unknown)),
        )
        blocks.append(Paragraph(words, Tone.WARNING))
    if advice.command:
        blocks += [Paragraph("Install what is missing with:"), Command(advice.command)]
    blocks += [Paragraph(_no_python(version), Tone.WARNING) for version in advice.pythons]
    if not (advice.missing or unknown):
        blocks.append(Paragraph("Nothing is missing.", Tone.GOOD))
    return Document("System packages that servers need", (Section("", tuple(blocks)),))


def _no_python(missing: str) -> Text:
    version = Name(missing)
    return text(
        "CPython {} is not on this machine: there is no python{} on the PATH, in /usr/local/bin, in "
        "/usr/bin, or installed by pyenv or uv. The system's packages may not offer it; `uv python install "
        "{}` or `pyenv install {}` installs it.",
        *(version, version, version, version),
    )


def _needs_row(item: ServerNeeds) -> tuple[Entry, ...]:
    server, needs = text("{}", Name(item.server)), joined(map(Name, item.needs))
    if not item.known:
        return Entry(server), Entry(needs), Entry("not known", Tone.WARNING)
    missing = joined(map(Name, item.missing))
    lacking = Entry(missing, Tone.BAD) if item.missing else Entry("nothing", Tone.GOOD)
    return Entry(server), Entry(needs), lacking

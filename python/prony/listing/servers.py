"""The catalogue as documents: a table of all servers, the declarations of one, and the results of checks."""

from collections.abc import Iterator, Mapping, Sequence

from prony.catalog.install.status import installed_versions, status
from prony.catalog.install.system import InstallAdvice, ServerNeeds
from prony.catalog.schema.entry import (
    FrontendEntry,
    HostEntry,
    IntSetting,
    KeepAliveFact,
    ProcessEntry,
    PythonInstall,
    ServerEntry,
    Setting,
    SettingCondition,
    SystemInstall,
)
from prony.catalog.schema.expression import calculate, names_in
from prony.catalog.schema.settings import all_settings, holds
from prony.check import ServerCheck
from prony.model import AvailabilityKind, Json
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
from prony.report.words import availability_words, ending_words
from prony.runas import resolve_user
from prony.units import format_count

__all__ = [
    "advice_document",
    "advice_json",
    "check_json",
    "checks_document",
    "server_document",
    "server_json",
    "servers_document",
]


def servers_document(entries: Sequence[ServerEntry], others: Sequence[ProcessEntry] = ()) -> Document:
    """Return a table of servers: interfaces, version, and whether they can be measured on this machine.

    ``others``: the frontends and services.
    """
    versions = installed_versions([*entries, *others], resolve_user())
    columns = (
        Column("server", text=True),
        Column("interface", text=True),
        Column("version", text=True),
        Column("here", text=True),
        Column("what it is", text=True),
    )
    rows = tuple(row for entry in entries for row in _rows(entry, versions))
    hint = Paragraph(
        "`prony servers NAME` shows one server's facts and settings, with their sources.", Tone.QUIET
    )
    sections = [Section("", (Table(columns, rows), hint))]
    if others:
        beside = tuple(row for entry in others for row in _rows(entry, versions))
        columns = (Column("name", text=True), Column("kind", text=True), *columns[2:])
        sections.append(Section("Frontends (server@frontend) and services", (Table(columns, beside),)))
    return Document("Servers", tuple(sections))


def _kind(entry: ProcessEntry) -> str:
    match entry:
        case ServerEntry():
            other = [wire for wire in entry.wires if wire != "http"]
            return ", ".join([*entry.interfaces, *other])
        case FrontendEntry():
            return f"frontend: {', '.join(entry.forwards)}"
    return "service"


_TONES = {
    AvailabilityKind.READY: Tone.GOOD,
    AvailabilityKind.INSTALLABLE: Tone.PLAIN,
    AvailabilityKind.LACKING: Tone.WARNING,
}


def _rows(entry: ProcessEntry, versions: Mapping[str, str]) -> Iterator[tuple[Entry, ...]]:
    here = status(entry)
    tone = _TONES[here.kind]
    spoken = _kind(entry)
    version = versions.get(entry.name) or _pinned(entry)
    yield (
        Entry(entry.name),
        Entry(spoken),
        Entry(version),
        Entry(availability_words(here), tone),
        Entry(entry.title),
    )
    for name, variant in entry.variants.items():
        yield (
            Entry(f"{entry.name}-{name}"),
            Entry(spoken),
            Entry(""),
            Entry(availability_words(here), tone),
            Entry(variant.title),
        )


def server_document(entry: ProcessEntry, *, here: bool = True) -> Document:
    """Return everything that the catalogue declares about one server, frontend or service.

    ``here`` false: without facts of this machine, and with the source of each setting.
    """
    needs = [f"{', '.join(names)} ({system})" for system, names in entry.needs if names]
    installed = installed_versions([entry], resolve_user()) if here else {}
    facts = [
        f"version {installed.get(entry.name) or _pinned(entry)}",
        *(fact for fact in (entry.licence, entry.upstream) if fact),
    ]
    lines = (
        ("", ", ".join(facts)),
        *((("", f"needs system packages: {'; '.join(needs)}"),) if needs else ()),
        ("", f"{_spoken(entry)}{f'; here: {availability_words(status(entry))}' if here else ''}"),
        *((("", entry.remark),) if entry.remark else ()),
    )
    sections = [Section("", (Notes(lines),))]
    if isinstance(entry, HostEntry):
        sections += _facts(entry)
    if entry.settings:
        sections.append(Section("Settings", _settings(entry, with_sources=not here)))
    if entry.variants:
        items = tuple(("", f"{entry.name}-{name}: {item.title}") for name, item in entry.variants.items())
        sections.append(Section("Variants", (Notes(items),)))
    told = entry.title.lower().startswith(f"{entry.name}:")
    return Document(entry.title if told else f"{entry.name}: {entry.title}", tuple(sections))


def _spoken(entry: ProcessEntry) -> str:
    match entry:
        case ServerEntry():
            by_itself = f", gives the replies of {', '.join(entry.serves)} itself" if entry.serves else ""
            return f"speaks {', '.join(entry.interfaces)} over {', '.join(entry.wires)}{by_itself}"
        case FrontendEntry():
            return f"passes requests on over {', '.join(entry.forwards)}"
    return "runs beside a server"


def _facts(entry: HostEntry) -> Iterator[Section]:
    facts = entry.facts
    table = Table(
        (Column("fact", text=True), Column("value", text=True), Column("source", text=True)),
        (
            _fact(
                "listen queue",
                "the kernel's limit" if facts.backlog.value is None else _valued(entry, facts.backlog.value),
                facts.backlog.source,
            ),
            *(
                _fact(_when("keep-alive", fact.when), _kept(entry, fact), fact.source)
                for fact in facts.keep_alive
            ),
            _fact("processes", _valued(entry, facts.concurrency.processes), facts.concurrency.source),
            _fact(
                "requests at once",
                "no fixed number"
                if facts.concurrency.slots is None
                else _valued(entry, facts.concurrency.slots),
                facts.concurrency.text,
            ),
        ),
    )
    yield Section("Facts", (table,))
    if facts.caveats:
        items = tuple(("", f"{item.text} ({item.source})") for item in facts.caveats)
        yield Section("Caveats", (Notes(items),))


def _fact(name: str, value: object, source: str) -> tuple[Entry, ...]:
    return Entry(name), Entry(str(value)), Entry(source, Tone.QUIET)


def _valued(entry: HostEntry, value: int | str, unit: str = "", when: SettingCondition | None = None) -> str:
    """Return a fact under the entry's default settings, and the settings that it depends on: ``2048
    (backlog)``.

    Only the settings are named if a default is the server's own, depends on the machine, or does not meet
    ``when``.
    """
    if not isinstance(value, str):
        return f"{value}{unit}"
    formula = value.replace("{", "").replace("}", "").replace("*", " × ")
    defaults = {name: setting.default for name, setting in entry.settings.items()}
    numbers = {name: default for name, default in defaults.items() if isinstance(default, int)}
    if when is not None and not holds(when, numbers):
        numbers.pop(when.setting, None)
    if not names_in(value) <= numbers.keys():
        return f"{formula}{unit}"
    return f"{calculate(value, numbers)}{unit} ({formula})"


def _when(name: str, condition: SettingCondition | None) -> str:
    if condition is None:
        return name
    if condition.above is not None:
        return f"{name} if {condition.setting} is above {condition.above}"
    return f"{name} if {condition.setting}" + (
        f" is {condition.value}" if condition.value is not None else ""
    )


def _kept(entry: HostEntry, fact: KeepAliveFact) -> str:
    if not fact.on:
        return "off"
    return "on" if fact.idle_s is None else f"on, idle for {_valued(entry, fact.idle_s, ' s', fact.when)}"


def _settings(entry: ProcessEntry, *, with_sources: bool) -> tuple[Block, ...]:
    titles = ("setting", "default", "values", "meaning", *(("source",) if with_sources else ()))
    columns = tuple(Column(title, text=True) for title in titles)
    rows = tuple(
        (
            *(Entry(name), Entry(_default(setting)), Entry(_range(setting)), Entry(setting.doc)),
            *((Entry(setting.source, Tone.QUIET),) if with_sources else ()),
        )
        for name, setting in all_settings(entry).items()
    )
    first = next(iter(entry.settings))
    hint = Paragraph(f"Change one with --set {entry.name}.{first}=VALUE.", Tone.QUIET)
    return Table(columns, rows), hint


def _default(setting: Setting) -> str:
    return (
        "the server's"
        if setting.default is None
        else str(setting.default).lower()
        if setting.type == "bool"
        else str(setting.default)
    )


def _range(setting: Setting) -> str:
    if isinstance(setting, IntSetting):
        return f"{setting.min} to {setting.max}"
    return (
        ", ".join(setting.choices)
        if setting.type == "choice"
        else {"bool": "true, false"}.get(setting.type, "text")
    )


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
    return {**found, "version": version, "status": availability_words(status(entry))}


# --- checks -----------------------------------------------------------------------------------------------


def checks_document(checks: Sequence[ServerCheck]) -> Document:
    """Return a table of the checks; for each failure the reason and the last lines of the log."""
    failed = [item for item in checks if not item.passed]
    sections = [Section("", (_checks_table(checks),))]
    odd = [item for item in checks if item.passed and item.failures]
    if odd:
        items = tuple((_checked(item), _failure_words(item)) for item in odd)
        sections.append(Section("Requests that failed", (Notes(items),)))
    for item in failed:
        lines = tuple(("", line) for line in item.log.splitlines())
        reason = Paragraph(f"failed at {item.stage}: {item.reason}", Tone.BAD)
        words = (Paragraph(_failure_words(item)),) if item.failures else ()
        log = (Notes(lines),) if lines else (Paragraph("It wrote no output.", Tone.QUIET),)
        sections.append(Section(_checked(item), (reason, *words, *log)))
    passed = len(checks) - len(failed)
    tone = Tone.BAD if failed else Tone.GOOD
    sections.append(Section("", (Paragraph(f"{passed} of {len(checks)} passed.", tone),)))
    return Document("Servers, checked", tuple(sections))


def _checks_table(checks: Sequence[ServerCheck]) -> Table:
    columns = (
        Column("server", text=True),
        Column("interface", text=True),
        Column("wire", text=True),
        Column("ready s"),
        Column("ok"),
        Column("failed"),
        Column("passed", text=True),
        Column("version", text=True),
        Column("stopped", text=True),
    )
    return Table(columns, tuple(_check_row(item) for item in checks))


def _check_row(item: ServerCheck) -> tuple[Entry, ...]:
    verdict = Entry("yes", Tone.GOOD) if item.passed else Entry(f"no: {item.stage}", Tone.BAD)
    loaded = item.ok + item.failed > 0
    return (
        Entry(item.server),
        Entry(item.interface),
        Entry(item.wire),
        Entry("—" if item.ready_s is None else f"{item.ready_s:.2f}"),
        Entry(format_count(item.ok) if loaded else "—"),
        Entry(format_count(item.failed) if loaded else "—"),
        verdict,
        Entry(item.version or "—"),
        Entry(_stopped(item)),
    )


def _stopped(item: ServerCheck) -> str:
    if item.stopped is None:
        return "—"
    more = f", {item.stopped.leftovers} more killed" if item.stopped.leftovers else ""
    return f"{item.stopped.how}, {item.stopped.seconds:.2f} s{more}"


def _checked(item: ServerCheck) -> str:
    return f"{item.server} ({item.interface})"


def _failure_words(item: ServerCheck) -> str:
    return "; ".join(
        f"{format_count(count)} {ending_words(ending)}" for ending, count in item.failures.items()
    )


def check_json(item: ServerCheck) -> Json:
    """Return the result of a check, as data."""
    stop = item.stopped
    failures = {ending.key: count for ending, count in item.failures.items()}
    return {
        "server": item.server,
        "interface": item.interface,
        "wire": item.wire,
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
        text = (
            f"For {', '.join(unknown)} only the names of Debian's packages are known; look for similar "
            "packages here."
        )
        blocks.append(Paragraph(text, Tone.WARNING))
    if advice.command:
        blocks += [Paragraph("Install what is missing with:"), Command(advice.command)]
    blocks += [Paragraph(_no_python(name), Tone.WARNING) for name in advice.pythons]
    if not (advice.missing or unknown):
        blocks.append(Paragraph("Nothing is missing.", Tone.GOOD))
    return Document("System packages that servers need", (Section("", tuple(blocks)),))


def _no_python(name: str) -> str:
    version = name.rpartition(" ")[2]
    return (
        f"{name} is not on this machine: there is no python{version} on the PATH, in /usr/local/bin, in "
        "/usr/bin, or installed by pyenv or uv. The system's packages may not offer it; `uv python install "
        f"{version}` or `pyenv install {version}` installs it."
    )


def _needs_row(item: ServerNeeds) -> tuple[Entry, ...]:
    if not item.known:
        return Entry(item.server), Entry(", ".join(item.needs)), Entry("not known", Tone.WARNING)
    lacking = Entry(", ".join(item.missing), Tone.BAD) if item.missing else Entry("nothing", Tone.GOOD)
    return Entry(item.server), Entry(", ".join(item.needs)), lacking


def advice_json(advice: InstallAdvice) -> Json:
    """Return the same as data."""
    servers = [
        {"server": item.server, "needs": item.needs, "missing": item.missing, "known": item.known}
        for item in advice.servers
    ]
    return {
        "system": advice.system,
        "missing": advice.missing,
        "command": advice.command,
        "servers": servers,
    }

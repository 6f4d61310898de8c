"""A user's own app on several servers, as a plan."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from prony.catalog.discover.current import Current
from prony.catalog.discover.programs import usual_servers
from prony.catalog.discover.sources import Program
from prony.catalog.discover.survey import DJANGO_SETTINGS, Survey
from prony.core.errors import UsageError
from prony.model.exchange import Check, Contract, Request
from prony.model.plan import Plan
from prony.model.subject import YOURS, App, Interface, yours_of
from prony.plan.document import WorkloadDocument
from prony.study.equal_share import EqualShare, equal_share

if TYPE_CHECKING:
    from prony.catalog.schema.entry import ServerEntry
    from prony.catalog.schema.loader import Catalog
    from prony.plan.build import PlanOptions
    from prony.plan.document import StudyDocument, SubjectDocument
    from prony.plan.factors import Choice


@dataclass(frozen=True, slots=True)
class OwnApp:
    """A user's own app and its load.

    ``found``: what its folder says; null for a built-in app. ``program``: what its folder has instead of an
    app for servers: it listens on a port itself, and ``app`` is null. Without ``servers``, those that are
    usual for the app's interface.

    ``current``: the command of today, which is the first server; null: there is none, or it is left out.

    ``load``: as a study's file would say it, with the paths of a mix in place of the request's. ``expected``:
    the reply that each request must get.

    ``text``: what the user wrote; it is kept verbatim, as a study's file is. ``app`` null: only ``commands``,
    programs that answer by themselves. ``request`` null: what the app's contract asks first, which only a
    built-in app has, else ``GET /``.
    """

    text: str
    app: str | None
    found: Survey | None
    commands: tuple[str, ...]
    interface: Interface | None
    folder: Path
    servers: tuple[str, ...]
    load: WorkloadDocument
    repeats: int
    request: Request | None
    expected: Check
    environment: dict[str, str]
    program: Program | None = None
    current: Current | None = None

    @property
    def contract(self) -> Contract:
        """The reply that is expected, for each path."""
        if not self.expected.says_anything:
            return Contract()
        asked = self.expected.request
        requests = [replace(asked, path=one.path) for one in self.load.paths] or [asked]
        return Contract(tuple(replace(self.expected, request=one) for one in requests))


def plan_of_app(
    wish: OwnApp, known: "Catalog", options: "PlanOptions", others: Sequence[OwnApp] = ()
) -> "tuple[Plan, Catalog]":
    """Return the plan of one app on several servers, and the catalogue that has them all. ``others``: the
    same app in other folders, which gets the same servers and the same load.

    *Errors*: UsageError when app or servers are not there, or do not fit.
    """
    from prony.catalog.schema.command import named_commands, program_entry
    from prony.catalog.schema.loader import with_app, with_server
    from prony.plan.build import calibrated, make_plan
    from prony.plan.document import CalibrationDocument

    commands = named_commands(wish.commands, wish.folder)
    if wish.program is not None:
        commands = (program_entry(wish.program, wish.folder, wish.environment), *commands)
    app, *more = _with_own_names([_app(one, known) for one in (wish, *others)])
    view = with_app(known, app)
    for other in more:
        view = with_app(view, other)
    for entry in commands:
        view = with_server(view, entry)
    own = tuple(entry.name for entry in commands)
    usual = not wish.servers
    wish = replace(wish, servers=_usual(app)) if usual else wish
    asked = replace(options, request=wish.request, profile=None, calibrate=None)
    notes = _said_of_program(wish.program) if wish.program else ()
    current = wish.current
    if current is not None:
        wish, view = _with_current(wish, current, app, view, is_usual=usual)
        share = equal_share(current, view, wish.servers, next(iter(app.targets)), options.settings)
        asked = replace(asked, settings=_merged(share.settings, options.settings))
        notes = (said_of(current), share.remark, *_other_commands(current, others))
    names = (app.name, *(one.name for one in more))
    document = _document(wish, names, own, _first_spoken(app, view, wish.servers), notes)
    plan = make_plan(document, wish.text, view, asked)
    # Of the catalogue as it came: the user's app may have the name of the reference server's.
    return calibrated(plan, known, CalibrationDocument() if options.calibrate else None), view


def _other_commands(current: Current, others: Sequence[OwnApp]) -> Iterator[str]:
    for other in others:
        if other.current is not None and other.current.text != current.text:
            yield f"{other.folder} has another command, which is not measured: {other.current.text}"


def _with_own_names(apps: Sequence[App]) -> list[App]:
    """Return the apps with names of their own: of several in folders of different names with those.

    >>> apps = [App("shop", "", folder, {}) for folder in ("/srv/main", "/srv/branch", "/old/main")]
    >>> [one.name for one in _with_own_names(apps)]
    ['shop-main', 'shop-branch', 'shop-main-2']
    """
    from prony.catalog.schema.apps import app_name

    found: dict[str, App] = {}
    for app in apps if len(apps) > 1 else ():
        name = f"{app.name}-{app_name(Path(app.folder).name)}"
        name = name if name not in found else f"{name}-{len(found)}"
        found[name] = replace(app, name=name)
    return list(found.values()) or list(apps)


def _with_current(
    wish: OwnApp, current: Current, app: App, view: "Catalog", *, is_usual: bool
) -> "tuple[OwnApp, Catalog]":
    """Return the wish with the command of today as its first server, unless the user gave it a place, and the
    catalogue that has it. Of the usual servers the same one is left out.
    """
    from prony.catalog.schema.loader import with_server

    view = with_server(view, _entry_of_today(current, app, view))
    # The name of a variant says another number of processes than it would have.
    named = {"uwsgi-two-a-cpu": "uwsgi-router-keepalive"} if is_usual else {}
    wanted = [named.get(name, name) for name in wish.servers]
    same = "" if current.program else current.server
    others = [name for name in wanted if not is_usual or view.split(name)[0] != same]
    servers = others if YOURS in others else [YOURS, *others]
    return replace(wish, servers=tuple(servers)), view


def _entry_of_today(current: Current, app: App, view: "Catalog") -> "ServerEntry":
    """Return the entry of the command of today, of that interface of the app whose target it serves."""
    from prony.catalog.schema.command import current_entry

    interface = next(
        (
            one
            for one, target in app.targets.items()
            if current.serves(app.factory.partition("(")[0] or target)
        ),
        None,
    )
    return current_entry(current, view.servers, interface or next(iter(app.targets)))


def _first_spoken(app: App, view: "Catalog", servers: Sequence[str]) -> dict[str, Interface]:
    """Return for each server the first of the app's interfaces that it speaks: its own before others."""
    speaks = {server: view.interfaces(server.partition("@")[0]) for server in servers}
    return {
        server: spoken
        for server, known in speaks.items()
        if (spoken := next((one for one in app.targets if one in known), None))
    }


def said_of(current: Current) -> str:
    """Return in one line what runs today, where that stands, and what of it is not taken over."""
    left = f"; left out: {', '.join(current.left_out)}" if current.left_out else ""
    also = f"; not taken: {', '.join(current.also)}" if current.also else ""
    return f"yours: {current.text}, from {current.source}{left}{also}"


def _said_of_program(program: Program) -> tuple[str, ...]:
    left = ", ".join(program.left_out)
    return (f"yours: {program.source}; left out: {left}",) if left else ()


def _merged(
    first: Mapping[str, Mapping[str, "Choice"]], winning: Mapping[str, Mapping[str, "Choice"]]
) -> dict[str, Mapping[str, "Choice"]]:
    return {name: {**first.get(name, {}), **winning.get(name, {})} for name in (*first, *winning)}


def _usual(app: App) -> tuple[str, ...]:
    """Return the servers for an app of which none were named."""
    return next((servers for one in app.targets if (servers := usual_servers(one))), ())


def _interface(wish: OwnApp, known: "Catalog") -> Interface:
    """Return how the app is called: as was said, else by its source, else by what the servers speak."""
    from prony.catalog.schema.apps import interface_of_file

    if wish.interface is not None:
        return wish.interface
    if of_file := interface_of_file(str(wish.app)):
        return of_file
    spoken = {
        server: known.interfaces(server.partition("@")[0]) for server in wish.servers if server != YOURS
    }
    if wish.found is not None and wish.found.interface is not None:
        return _spoken_by_all(wish.found, wish.found.interface, spoken)
    other = [server for server, speaks in spoken.items() if Interface.WSGI not in speaks]
    if other and all(Interface.ASGI in speaks for speaks in spoken.values()):
        return Interface.ASGI
    if other:
        speaks = ", ".join(spoken[other[0]])
        raise UsageError(
            f"`{other[0]}` speaks {speaks}, but the app `{wish.app}` was taken as WSGI",
            hint=f"if it is not: --interface {spoken[other[0]][0]}; or leave `{other[0]}` out of --servers",
        )
    return Interface.WSGI


def _spoken_by_all(
    found: Survey, interface: Interface, spoken: Mapping[str, Sequence[Interface]]
) -> Interface:
    offered, reason = {interface, *found.others}, found.reason
    other = next((server for server, speaks in spoken.items() if not offered & set(speaks)), None)
    if other is None:
        return interface
    fitting = ",".join(usual_servers(interface))
    if not fitting:
        raise UsageError(
            f"`{other}` cannot serve it: {reason}", hint="name the app that it makes: --app module:attribute"
        )
    raise UsageError(
        f"`{other}` speaks {', '.join(spoken[other])}, but the app is {interface} ({reason})",
        hint=f"--servers {fitting} speak it; if it is something else, say so with --interface",
    )


def _app(wish: OwnApp, known: "Catalog") -> App:
    from prony.catalog.schema.apps import app_name, interface_of_file, user_app
    from prony.catalog.schema.command import command_app

    if wish.app is not None and wish.app in known.apps:
        return _built_in(wish, known.apps[wish.app])
    contract = wish.contract
    if wish.app is None:
        name = {"name": app_name(wish.folder.name)} if wish.program else {}
        return command_app(wish.folder, contract, wish.environment, **name)
    if wish.found is None and interface_of_file(wish.app) is None:
        near = get_close_matches(wish.app, known.apps, n=3, cutoff=0.5)
        names = f"did you mean {' or '.join(f'`{name}`' for name in near)}? " if near else ""
        raise UsageError(
            f"`{wish.app}` does not name an application; expected `module:attribute`, such as `hello:app`, "
            "a .psgi, .php or .ru file, or a built-in app",
            hint=f"{names}built-in apps: {', '.join(known.apps)}",
        )
    found = wish.found
    interface = _interface(wish, known)
    environment = {
        **(found.environment if found else {}),
        **(wish.current.environment if wish.current else {}),
        **wish.environment,
    }
    if found is not None:
        _refuse_without_variables(found, environment, wish.folder)
    if interface is Interface.NONE:
        app = command_app(wish.folder, contract, environment, app_name(wish.folder.name))
        return replace(app, root=found.root) if found else app
    app = user_app(
        _target(wish, interface),
        wish.folder,
        interface,
        contract=contract,
        environment=environment,
        root=found.root if found else "",
        call=found.call if found else "",
    )
    others = found.others if found and found.interface is interface else {}
    none = {Interface.NONE: ""} if wish.commands else {}
    return replace(app, targets={**app.targets, **others, **none})


def _refuse_without_variables(found: Survey, environment: Mapping[str, str], folder: Path) -> None:
    """Refuse an app that cannot be imported without variables that nobody set, all of them at once.

    *Errors*: UsageError with their names.
    """
    is_other = environment.get(DJANGO_SETTINGS) != found.environment.get(DJANGO_SETTINGS)
    needed = [one for one in found.needed if not (one.of_settings and is_other)]
    missing = [one for one in needed if one.name not in environment]
    if not missing:
        return
    shown = ", ".join(f"`{one.name}` ({one.path}:{one.line})" for one in missing)
    by_hand = " ".join(f"--env {one.name}=..." for one in missing if one.name not in found.offered)
    file = (
        f"--env-file {folder / found.env_file}" if any(one.name in found.offered for one in missing) else ""
    )
    raise UsageError(
        f"the app needs variables that are not set: {shown}",
        hint=f"{' '.join(filter(None, (file, by_hand)))} sets them; --env NAME passes one of your own",
    )


def _target(wish: OwnApp, interface: Interface) -> str:
    """Return the app's target for an interface: of a project that offers several, the one of that."""
    if wish.found is None:
        return str(wish.app)
    return wish.found.others.get(interface, wish.found.target)


def _built_in(wish: OwnApp, app: App) -> App:
    if wish.expected.says_anything or wish.environment:
        raise UsageError(
            f"`{wish.app}` is a built-in app, whose contract says what it must answer",
            hint="leave out --expect-... and --env; or name your own app, module:attribute",
        )
    return replace(app, targets={**app.targets, Interface.NONE: ""}) if wish.commands else app


def _called(wish: OwnApp) -> str:
    if wish.program is not None:
        return wish.folder.name or "the program"
    return (wish.found.target or wish.folder.name) if wish.found else wish.app or "one address"


def _question(wish: OwnApp, apps: int) -> str:
    if apps > 1:
        return f"Which of {apps} folders has the best {_called(wish)}, and on which server?"
    if wish.app is not None:
        return f"Which server runs {_called(wish)} best?"
    if wish.program is not None and not wish.commands:
        return f"What does {_called(wish)} carry, and what limits it?"
    return "Which command serves best?"


def _document(
    wish: OwnApp,
    apps: Sequence[str],
    commands: Sequence[str],
    interfaces: Mapping[str, Interface],
    notes: tuple[str, ...],
) -> "StudyDocument":
    from prony.plan.document import ProfileDocument, StudyDocument, SubjectDocument

    subjects = []
    if wish.app is not None:
        subjects += [
            SubjectDocument(
                server=(server,), app=tuple(apps), interface=interfaces.get(server, wish.interface)
            )
            for server in wish.servers
        ]
    if commands:
        subjects.append(SubjectDocument(server=tuple(commands), app=tuple(apps)))
    servers = [*(wish.servers if wish.app is not None else ()), *commands]
    what = _called(wish)

    assert wish.load.duration is not None, "it has all times"
    profile = ProfileDocument(blocks=wish.repeats, duration=wish.load.duration)
    return StudyDocument(
        name=re.sub(r"[^a-z0-9]+", "-", apps[0].lower()).strip("-") or "app",
        title=f"{what} on {len(servers)} server{'s' if len(servers) != 1 else ''}",
        question=_question(wish, len(apps)),
        subjects=tuple(subjects),
        workloads=(wish.load,),
        profiles={"custom": profile},
        notes=notes,
    )


# --- in a study of the user's own --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StudyApp:
    """An app of the user's own in a study: for each of its servers the interface, and the settings that give
    it as much as ``yours`` has.

    ``command``: the entry of ``yours``, null: nobody measures it. ``notes``: what is said of the app.
    """

    app: App
    interfaces: Mapping[str, Interface]
    settings: Mapping[str, Mapping[str, "Choice"]]
    command: "ServerEntry | None" = None
    notes: tuple[str, ...] = ()


def study_app(name: str, wish: OwnApp, known: "Catalog") -> StudyApp:
    """Return an app of a study, which calls it ``name``. ``wish.servers``: those beside its own command.

    *Errors*: UsageError as `plan_of_app`, for a name that the catalogue has, and for a built-in app.
    """
    taken = next((one for one in (name, wish.app) if one in known.apps), None)
    if taken is not None:
        raise UsageError(
            f"`{taken}` is a built-in app; expected an app of your own, under another name",
            hint=f'[[subjects]] names built-in apps: app = "{taken}"',
        )
    app = replace(_app(wish, known), name=name)
    current, entry = wish.current, _own_command(wish, app, known)
    entry = entry and entry.model_copy(update={"name": yours_of(name)})
    first = next(iter(app.targets))
    share = equal_share(current, known, wish.servers, first, {}) if current else EqualShare()
    notes: tuple[str, ...] = (said_of(current), share.remark) if current else ()
    notes = _said_of_program(wish.program) if wish.program else notes
    said = tuple(f"{name}: {note}" for note in notes if note)
    return StudyApp(app, _first_spoken(app, known, wish.servers), share.settings, entry, said)


def _own_command(wish: OwnApp, app: App, view: "Catalog") -> "ServerEntry | None":
    from prony.catalog.schema.command import named_commands, program_entry

    if wish.commands:
        return named_commands(wish.commands, wish.folder)[0]
    if wish.program is not None:
        return program_entry(wish.program, wish.folder, wish.environment)
    return None if wish.current is None else _entry_of_today(wish.current, app, view)


def catalog_with(known: "Catalog", apps: Iterable[StudyApp]) -> "Catalog":
    """Return the catalogue with the apps of a study, and their commands."""
    from prony.catalog.schema.loader import with_app, with_server

    for one in apps:
        known = with_app(known, one.app)
        known = known if one.command is None else with_server(known, one.command)
    return known


def fitted_to(document: "StudyDocument", apps: Mapping[str, StudyApp]) -> "StudyDocument":
    """Return the study whose own ``apps`` are fitted to their servers, where it does not say otherwise."""
    parts = tuple(one for part in document.subjects for one in _fitted(part, apps))
    notes = (*document.notes, *(note for app in apps.values() for note in app.notes))
    return document.model_copy(update={"subjects": parts, "notes": notes})


def _fitted(part: "SubjectDocument", apps: Mapping[str, StudyApp]) -> "Iterator[SubjectDocument]":
    if apps.keys().isdisjoint(part.app):
        yield part
        return
    for server, app in part.pairs:
        pair: dict[str, object] = {"server": (server,), "app": (app,)}
        own = apps.get(app)
        if own is not None:
            # Its command calls it in its own way.
            alone = server.partition("@")[0] == YOURS
            pair["interface"] = None if alone else part.interface or own.interfaces.get(server)
            pair["settings"] = {**own.settings.get(server, {}), **part.settings}
        yield part.model_copy(update=pair)

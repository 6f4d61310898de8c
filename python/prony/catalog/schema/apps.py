"""Apps: the built-in ones, a user's own, and what identifies them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from re import fullmatch

from prony.catalog import DATA
from prony.catalog.schema.entry import AppEntry, CheckEntry, RepeatedBody
from prony.catalog.schema.toml_source import read_toml, validate
from prony.core.errors import UsageError, explained
from prony.core.safe_text import escaped
from prony.core.trees import content, walk
from prony.core.units import MIB
from prony.model.exchange import Check, Contract, Request
from prony.model.subject import FACTORY_TARGET, App, Interface

BUILT_IN_APPS = DATA / "apps"

# What is no source: version control, and what tools install or keep there.
SKIPPED = frozenset(
    {".git", ".hg", ".tox", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"}
)

# Files that determine an app's replies; others, such as a database's file, may change during a measurement.
_SUFFIXES = frozenset(
    {
        *(".py", ".psgi", ".pl", ".pm", ".sql", ".html"),
        *(".go", ".mod", ".sum", ".js", ".mjs", ".cjs", ".ts", ".php", ".rb", ".ru", ".erb"),
    }
)
_NAMES = frozenset({"package.json", "package-lock.json", "composer.lock", "Procfile"})

OF_FILES = {
    Interface.PSGI: "a PSGI application",
    Interface.PHP: "a page in PHP",
    Interface.RACK: "a Rack application",
}
_ENDINGS = {Interface.PSGI: "psgi", Interface.PHP: "php", Interface.RACK: "ru"}


def interface_of_file(target: str) -> Interface | None:
    """Return the interface whose apps are files of this name; None where it is none.

    >>> interface_of_file("public/index.php"), interface_of_file("shop:app")
    (<Interface.PHP: 'php'>, None)
    """
    return next((one for one, ending in _ENDINGS.items() if target.endswith(f".{ending}")), None)


"""Interfaces whose target is a file: what it holds."""

# Enough for a large application; beyond it, only name and size of files enter the digest, to stay fast.
_MOST_BYTES = 64 * MIB
_MOST_FILES = 20_000


def load_apps(file: Path) -> tuple[App, ...]:
    """Return the apps that ``file``, an `app.toml`, describes: its folder's name is its name.

    Its variants are apps of their own, named ``<folder>-<variant>``.

    *Errors*: UsageError with all problems of the file.
    """
    entry = validate(read_toml(file), AppEntry)
    app = App(
        name=file.parent.name,
        title=entry.title,
        folder=str(file.parent),
        targets=dict(entry.targets),
        requirements=entry.requirements,
        services=entry.services,
        contract=_contract(entry.checks),
        environment=dict(entry.environment),
        digest=folder_digest(file.parent),
    )
    variants = (
        replace(app, name=f"{app.name}-{name}", title=variant.title, contract=_contract(variant.checks))
        for name, variant in entry.variants.items()
    )
    return app, *variants


def _contract(checks: Sequence[CheckEntry]) -> Contract:
    return Contract(
        tuple(
            Check(
                Request(check.method, check.path, tuple(check.headers.items()), _body(check.request_body)),
                check.status,
                _body(check.body),
            )
            for check in checks
        )
    )


def _body(body: str | RepeatedBody | None) -> bytes | None:
    match body:
        case None:
            return None
        case str():
            return body.encode()
        case RepeatedBody():
            return body.repeat.encode() * body.times


def user_app(  # noqa: PLR0913 - what a user may say of an app
    target: str,
    folder: Path,
    interface: Interface,
    *,
    contract: Contract = Contract(),
    environment: Mapping[str, str] | None = None,
    root: str = "",
    call: str = "",
) -> App:
    """Return a user's own app: the callable ``target`` (``module:attribute``) importable from ``root`` in
    ``folder``; ``call``: that makes the app, called with these arguments.

    A requirements file is not the app's but the environment's: see
    `prony.catalog.install.environment.EnvironmentRequest`.

    *Errors*: UsageError when the target has another form, or the folder or the module does not exist.
    """
    if interface in OF_FILES:
        return _file_app(target, folder, interface, contract, environment or {})
    module = target.partition(":")[0]
    if not is_target(interface, target):
        raise UsageError(
            f"`{target}` does not name an application; expected `module:attribute`, such as `hello:app`"
        )
    folder = _named(folder.expanduser().absolute())
    if not folder.is_dir():
        raise UsageError(
            f"`{folder}` is not a folder; expected the folder that contains the module `{module}`"
        )
    if not any(candidate.exists() for candidate in _module_files(folder / root, module)):
        raise UsageError(
            f"`{folder}` has no module `{module}`: neither `{module.replace('.', '/')}.py` nor a package",
            hint=_near_module(folder / root, target),
        )
    return App(
        name=app_name(module),
        title=target,
        folder=str(folder),
        targets={interface: FACTORY_TARGET if call else target},
        factory=f"{target}{call}" if call else "",
        contract=contract,
        environment=dict(environment or {}),
        digest=folder_digest(folder),
        root=root,
    )


def _near_module(folder: Path, target: str) -> str:
    """Return what may have been meant by a target whose module is not there."""
    module, colon, attribute = target.partition(":")
    there = [one.stem for one in folder.glob("*") if one.suffix == ".py" or (one / "__init__.py").exists()]
    near = get_close_matches(module, there, n=1)
    meant = f"did you mean --app {near[0]}{colon}{attribute}? " if near else ""
    return f"{meant}--dir names the folder that contains the module"


def _named(folder: Path) -> Path:
    """Return an app's folder.

    *Errors*: UsageError for a name that an archive, which is UTF-8, could not hold.
    """
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"`{escaped(str(folder))}` has a name that is not UTF-8; expected one that an archive can hold"
        ) from None
    return folder


def is_target(interface: Interface, target: str) -> bool:
    """Return whether ``target`` is a name of the kind that this interface has, and nothing more.

    Servers evaluate calls in place of an attribute, and load files from any folder: neither is a name.

    >>> is_target(Interface.WSGI, "shop.web:app"), is_target(Interface.WSGI, "os:system('id')")
    (True, False)
    >>> is_target(Interface.PSGI, "shop.psgi"), is_target(Interface.PSGI, "../shop.psgi")
    (True, False)
    >>> is_target(Interface.PHP, "index.php"), is_target(Interface.PHP, "index.psgi")
    (True, False)
    """
    match interface:
        case Interface.WSGI | Interface.ASGI:
            module, colon, attribute = target.partition(":")
            parts = (*module.split("."), *attribute.split("."))
            return bool(colon) and all(part.isidentifier() for part in parts)
        case Interface.PSGI | Interface.PHP | Interface.RACK:
            return fullmatch(rf"[A-Za-z0-9_][A-Za-z0-9_-]*\.{_ENDINGS[interface]}", target) is not None
        case Interface.NONE:
            return not target


def _file_app(
    target: str, folder: Path, interface: Interface, contract: Contract, environment: Mapping[str, str]
) -> App:
    folder = _named(folder.expanduser().absolute())
    file = folder / target
    if not is_target(interface, file.name) or not file.is_file():
        raise UsageError(
            f"`{target}`: there is no such file; expected {OF_FILES[interface]}, such as "
            f"`hello.{_ENDINGS[interface]}`"
        )
    # It runs where its project is, as `plackup bin/app.psgi` would.
    inside = folder if file.is_relative_to(folder) and ".." not in file.parts else None
    return App(
        # Of Ruby nearly every app has this file.
        name=app_name(folder.name if target == "config.ru" else file.stem),
        title=target,
        folder=str(inside or file.parent),
        targets={interface: file.name},
        contract=contract,
        environment=dict(environment),
        digest=folder_digest(inside or file.parent),
        root=file.parent.relative_to(inside).as_posix().removeprefix(".") if inside else "",
    )


@explained("cannot read the app's files", "servers and you must be able to read all of them")
def folder_digest(folder: Path) -> str:
    """Return the SHA-256, in hexadecimal, over names and content of an app's files in ``folder`` and below.

    Version control, virtual environments and caches are left out.

    *Errors*: HostError for a file that cannot be read.
    """
    digest = hashlib.sha256()
    budget = _MOST_BYTES
    for number, file in enumerate(app_files(folder)):
        size = file.stat().st_size
        whole = number < _MOST_FILES and size <= budget
        budget -= size if whole else 0
        entered = hashlib.sha256(content(file)).hexdigest() if whole else str(size)
        digest.update(f"{file.relative_to(folder).as_posix()}\0{entered}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def is_built_in(app: App) -> bool:
    """Return whether the app comes with Prony."""
    return Path(app.folder).parent == BUILT_IN_APPS


def app_files(folder: Path) -> Iterator[Path]:
    """Yield the files that determine an app's replies, in ``folder`` and below, in a fixed order."""
    for parent, folders, files in walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(files):
            file = Path(parent, name)
            if (file.suffix in _SUFFIXES or name in _NAMES) and file.is_file():
                yield file


def _module_files(folder: Path, module: str) -> tuple[Path, Path]:
    base = folder.joinpath(*module.split("."))
    return base.with_name(f"{base.name}.py"), base


def app_name(module: str) -> str:
    """Return an app's name for that of a module or a folder.

    >>> app_name("shop.web"), app_name("Läden"), app_name("_")
    ('shop-web', 'l-den', 'app')
    """
    name = "".join(
        letter if letter.isascii() and letter.isalnum() else "-" for letter in module.lower()
    ).strip("-")
    return name or "app"

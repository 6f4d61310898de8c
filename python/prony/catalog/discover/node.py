"""A program for Node.js, recognised by its ``package.json``. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> files = {"package.json": '{"scripts": {"start": "node shop.js --quiet"}}', "shop.js": ""}
>>> node_program(Folder(files.get, lambda path: list(files)), "").command
('{node}', 'shop.js', '--quiet')
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import NoReturn

from prony.catalog.discover.servers import PLAIN, with_address
from prony.catalog.discover.sources import Folder, Program, table_in
from prony.core.errors import UsageError

_NODE = {"node": ("node", "nodejs")}
NPM_TOOLS = {**_NODE, "npm": ("npm",), "cp": ("cp",)}
_LOCKS = ("package-lock.json", "npm-shrinkwrap.json")
_NEWEST = "package.json, the newest that it allows: nothing locks them"
_LYING = "node_modules, as it is"
_OTHER_LOCKS = ("yarn.lock", "pnpm-lock.yaml", "bun.lock")
_MANAGERS = ("npm", "npx", "yarn", "pnpm", "bun", "bunx", "cross-env", "env", "sh")
# *Source*: Node.js documentation, Command-line API.
_WITH_VALUE = (
    *("-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"),
    *("--env-file", "--env-file-if-exists", "--watch-path", "--title"),
)
# What serves pages while a person writes them: of several folders the other one has the app.
_FOR_BROWSERS = re.compile(r"(?:react-scripts|vite|ng|vue-cli-service|parcel|webpack(?:-dev-server)?)\b")
_EVALUATED = ("-e", "--eval", "-p", "--print", "--run", "--test")
# *Source*: npm documentation, Scripts, Life Cycle Scripts.
_MAKING = ("build", "prepare", "postinstall", "install", "preinstall")


def node_program(folder: Folder, typed: str, started: tuple[str, ...] = ()) -> Program:
    """Return the program of a folder: the file ``typed``, or what ``package.json`` says that it starts with.
    ``started``: the command that stands where ``typed`` says.

    npm installs its packages into a copy: those of its lock; without one those that lie there, else the
    newest that ``package.json`` allows.

    *Errors*: UsageError when nothing says how it starts, or when it needs packages that are not there.
    """
    manifest = _manifest(folder)
    command, source = (started or ("{node}", typed), typed) if typed else _start(folder, manifest)
    uses_npm = command[0] == "{npm}"
    lock = _lock(folder)
    has_own, with_dev = folder.has("node_modules"), _needs_dev(manifest, command)
    needs = _needs_packages(manifest, with_dev=with_dev)
    is_built = (bool(lock) or not has_own) and (needs or "build" in _scripts(manifest))
    if (file := _missing_file(folder, command)) and not (is_built and _makes(manifest)):
        _refuse_without(file, source, manifest)
    if is_built and not lock:
        _refuse_other_locks(folder)
    there = _LYING if has_own else ""
    return Program(
        name="node",
        language="javascript",
        source=source,
        command=command,
        tools=NPM_TOOLS if uses_npm or is_built else _NODE,
        build=tuple(_build(manifest, "ci" if lock else "install", with_dev=with_dev)) if is_built else (),
        product="package.json" if is_built else "",
        is_carried=is_built,
        packages=(lock or _NEWEST) if is_built else there,
        # As where it is deployed: Express and others keep nothing between requests without it.
        environment={"NODE_ENV": "production"},
        debian=("nodejs", "npm") if uses_npm or is_built else ("nodejs",),
    )


def has_package(folder: Folder, place: str) -> bool:
    """Return whether the folder is a workspace, and the one below it, ``place``, a package of it that has no
    lock of its own.

    *Source*: npm documentation, Workspaces: one lock, that of the workspace; Yarn's may name `packages`.

    >>> files = {"package.json": '{"workspaces": ["services/*"]}', "services/shop/package.json": "{}"}
    >>> has_package(Folder(files.get, lambda path: []), "services/shop")
    True
    """
    found = _manifest(folder).get("workspaces")
    patterns = found.get("packages") if isinstance(found, dict) else found
    own = folder.below(place)
    if not isinstance(patterns, list) or not own.has("package.json") or _lock(own):
        return False
    return any(_is_at(place, str(one).removeprefix("./").rstrip("/")) for one in patterns)


def _is_at(place: str, pattern: str) -> bool:
    """Return whether a pattern names a folder: a star is one name, or a part of it."""
    names, parts = place.split("/"), pattern.split("/")
    return len(names) == len(parts) and all(map(fnmatchcase, names, parts))


def as_package(own: Program, folder: Folder, place: str) -> Program:
    """Return the program of a package as one of its workspace: it starts where the package is, with what npm
    installs for all; without their lock as `node_program`.

    *Errors*: UsageError when another one's lock says what it needs, and nothing is installed.
    """
    lock, has_own = _lock(folder), folder.has("node_modules")
    there = replace(
        own,
        command=("{env}", "-C", place, *own.command),
        tools={**NPM_TOOLS, **own.tools, "env": ("env",)},
        debian=("nodejs", "npm"),
    )
    if has_own and not lock:
        return replace(there, build=(), product="", is_carried=False, packages=_LYING)
    if not lock:
        _refuse_other_locks(folder)
    root, manifest = _manifest(folder), _manifest(folder.below(place))
    with_dev = _needs_dev(manifest, own.command) or _makes(root)
    build = _build(root, "ci" if lock else "install", with_dev=with_dev)
    if "build" in _scripts(manifest) and "build" not in _scripts(root):
        build.insert(1, ("{npm}", "run", "build", "-w", place))
    return replace(
        there, build=tuple(build), product="package.json", is_carried=True, packages=lock or _NEWEST
    )


def is_node(folder: Folder) -> bool:
    """Return whether a folder says what `npm start` would start there: that of a workspace need not."""
    if not folder.has("package.json"):
        return False
    manifest = _manifest(folder)
    files, start = ("server.js", str(manifest.get("main") or "index.js")), _scripts(manifest).get("start", "")
    return bool(start and not _FOR_BROWSERS.match(start)) or any(map(folder.has, files))


def package_name(folder: Folder, place: str) -> str:
    """Return the name of the package in a folder below; empty: it has none."""
    return str(_manifest(folder.below(place)).get("name") or "")


def required_packages(folder: Folder) -> set[str]:
    """Return the names of the packages that a folder's own needs when it runs."""
    manifest = _manifest(folder) if folder.has("package.json") else {}
    tables = (manifest.get(kind) for kind in ("dependencies", "optionalDependencies", "peerDependencies"))
    return {str(name) for table in tables if isinstance(table, dict) for name in table}


def _manifest(folder: Folder) -> Mapping[str, object]:
    text = folder.read("package.json")
    return table_in(json.loads, "package.json", text) if text else {}


def _start(folder: Folder, manifest: Mapping[str, object]) -> tuple[tuple[str, ...], str]:
    """*Source*: npm documentation, npm start, and package.json, main: ``server.js`` without a script; Nest
    documentation, Deployment: `start:prod` beside a `start` for development.
    """
    scripts = _scripts(manifest)
    is_apart = "start:prod" in scripts and "start:prod" not in scripts.get("start", "")
    name = "start:prod" if is_apart else "start"
    if name in scripts:
        return _of_script(scripts, name), f"`scripts.{name}` in package.json"
    if folder.has("server.js"):
        return ("{node}", "server.js"), "server.js"
    main = manifest.get("main")
    if isinstance(main, str) and main:
        return ("{node}", main), "`main` in package.json"
    if folder.has("index.js"):
        return ("{node}", "index.js"), "index.js"
    raise UsageError(
        "`package.json` has neither `scripts.start` nor `main`, and there is no server.js or index.js",
        hint="name the file that listens: --app server.js",
    )


def _of_script(scripts: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return a script's words at Prony's address: where it only starts Node.js, or a package's tool with an
    address of its own; else npm, which runs it by a shell, and the one before it.
    """
    is_plain = PLAIN.fullmatch(scripts[name]) and f"pre{name}" not in scripts
    words = shlex.split(scripts[name]) if is_plain else []
    placed = with_address(words)
    if words[:1] and words[0] in ("node", "nodejs"):
        return ("{node}", *placed[1:])
    if placed != words and not set("=/") & set(words[0]) and words[0] not in _MANAGERS:
        return ("{npm}", "exec", "--silent", "--", *placed)
    return ("{npm}", "start", "--silent") if name == "start" else ("{npm}", "run", "--silent", name)


def _missing_file(folder: Folder, command: tuple[str, ...]) -> str:
    """Return the file that Node.js is started with, if it is not there; else empty."""
    words = [word for before, word in pairwise(command) if before not in _WITH_VALUE]
    file = next((word for word in words if not word.startswith("-")), "")
    ends = ("", ".js", ".cjs", ".mjs", "/index.js", "/package.json")
    if command[0] != "{node}" or not file or set("{}") & set(file) or set(_EVALUATED) & set(command):
        return ""
    return "" if any(folder.has(f"{file}{end}") for end in ends) else file


def _refuse_without(file: str, source: str, manifest: Mapping[str, object]) -> NoReturn:
    """*Errors*: UsageError with the file, and what would make it."""
    starts = f"{source} starts `{file}`, which is not there"
    if "build" in _scripts(manifest):
        raise UsageError(
            f"{starts}; Prony builds nothing with the `node_modules` that lies there",
            hint="build it where the app is: npm run build, or that of yarn or pnpm",
        )
    raise UsageError(
        f"{starts}, and no script `build` of package.json makes it",
        hint="build it where the app is; or name what builds it in package.json, as `scripts.build`",
    )


def _lock(folder: Folder) -> str:
    return next((name for name in _LOCKS if folder.has(name)), "")


def _makes(manifest: Mapping[str, object]) -> bool:
    return bool(set(_MAKING) & _scripts(manifest).keys())


def _build(manifest: Mapping[str, object], by: str, *, with_dev: bool) -> list[tuple[str, ...]]:
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier")
    packages = ("{npm}", by, *quiet, "--include=dev" if with_dev else "--omit=dev")
    made = (("{npm}", "run", "build"),) if "build" in _scripts(manifest) else ()
    return [packages, *made, ("{cp}", "-R", "-P", "{source}/.", "{build}")]


def _refuse_other_locks(folder: Folder) -> None:
    other = next((name for name in _OTHER_LOCKS if folder.has(name)), None)
    if other is not None:
        raise UsageError(
            f"the app needs packages, and Prony installs none of `{other}`; expected a folder `node_modules`",
            hint="install them where the app is, and Prony measures it with what lies there",
        )


def _needs_packages(manifest: Mapping[str, object], *, with_dev: bool) -> bool:
    kinds = ("dependencies", "optionalDependencies", "workspaces", *["devDependencies"] * with_dev)
    return any(manifest.get(name) for name in kinds)


def _needs_dev(manifest: Mapping[str, object], command: tuple[str, ...]) -> bool:
    """Return whether what is for development must be there: a script that npm runs may start any of it."""
    found = manifest.get("devDependencies")
    names = ("node_modules", *(found if isinstance(found, dict) else ()))
    words = [word.rpartition("=")[2] for word in command]
    is_named = any(f"{word}/".startswith((f"{name}/", f"./{name}/")) for word in words for name in names)
    return is_named or command[0] != "{node}" or _makes(manifest)


def _scripts(manifest: Mapping[str, object]) -> Mapping[str, str]:
    found = manifest.get("scripts")
    return {str(k): v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}

"""A program in Go, recognised by its ``go.mod``. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> files = {"go.mod": "module shop", "main.go": "package main\\n\\nfunc main() {}"}
>>> go_program(Folder(files.get, lambda path: list(files) if not path else []), "").command
('{build}/server',)
"""

import re
from collections.abc import Iterator
from posixpath import basename, normpath

from prony.catalog.discover.images import DOCKERFILES
from prony.catalog.discover.sources import Folder, Program
from prony.core.errors import UsageError

_TOOLS = {"go": ("go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go", "/usr/lib/go-*/bin/go")}
# *Source*: The Go Programming Language Specification, Program execution.
_PACKAGE = re.compile(r"^package[ \t]+main\b", re.MULTILINE)
_MAIN = re.compile(r"^func[ \t]+main\(\)", re.MULTILINE)
# *Source*: Organizing a Go module (go.dev/doc/modules/layout): commands in `cmd`.
_COMMANDS = "cmd"
_NO_COMMANDS = ("vendor", "testdata", "internal", "pkg", "examples", "tools", "scripts", "test", "docs")
# What the command that serves is called among others, such as one that migrates tables.
_SERVING = ("server", "serve", "web", "api", "app", "http")
_BUILT = re.compile(r"\bgo[ \t]+(?:build|install|run)\b(?P<words>[^\n;&|]*)")
_MODULE = re.compile(r"^module[ \t]+(\S+)", re.MULTILINE)
_CARRIED = re.compile(r"^COPY[ \t]+--from=.*[ \t](\S+)", re.MULTILINE)


def go_program(folder: Folder, typed: str, started: str = "") -> Program:
    """Return the program of a module: of the package in the folder ``typed``, or of the only one there is.
    ``started``: what the command of today calls it, which of several is the one.

    *Errors*: UsageError when there is no main package, or several.
    """
    package = typed or _only_package(folder, started)
    if not is_main_package(folder, package):
        raise UsageError(
            f"`{typed}` has no main package; expected a folder with `package main` and `func main()`"
        )
    place = f"./{package}" if package else "."
    return Program(
        name="go",
        language="go",
        source=f"package main in {package or 'the folder of go.mod'}",
        command=("{build}/server",),
        tools=_TOOLS,
        # What go.sum locks: `go build` changes neither file (-mod=readonly is its default).
        build=(("{go}", "build", "-trimpath", "-buildvcs=false", "-o", "{build}/server", place),),
        product="server",
        packages="go.sum" if folder.has("go.sum") else "",
        debian=("golang-go",),
    )


def is_main_package(folder: Folder, path: str) -> bool:
    """Return whether a folder has a program's main function."""
    texts = [text for name in folder.names(path) if _is_source(name) and (text := _text(folder, path, name))]
    return any(map(_PACKAGE.search, texts)) and any(map(_MAIN.search, texts))


def is_binary(folder: Folder, name: str) -> bool:
    """Return whether the module's program, or one of them, is called ``name`` where it runs."""
    texts = [folder.read(file) or "" for file in DOCKERFILES]
    carried = [path for text in texts for path in _CARRIED.findall(text)]
    paths = [*carried, *_command_packages(folder), *_MODULE.findall(folder.read("go.mod") or "")]
    return name in {*map(basename, paths), *(binary for binary, _ in _built_packages(folder))}


def _only_package(folder: Folder, started: str) -> str:
    as_built = [path for name, path in _built_packages(folder) if name == started]
    if started and as_built and is_main_package(folder, as_built[0]):
        return as_built[0]
    if is_main_package(folder, ""):
        return ""
    found = list(_command_packages(folder)) or list(_other_packages(folder))
    built = [path for _, path in _built_packages(folder) if path and is_main_package(folder, path)]
    built = list(dict.fromkeys(built))
    named_so = [path for path in found if path.rpartition("/")[2] == started]
    serving = [path for path in found if path.rpartition("/")[2] in _SERVING]
    for named in (found, named_so, built, serving):
        if len(named) == 1:
            return named[0]
    if not found:
        raise UsageError(
            "the module of `go.mod` has no main package in its folder or in two levels below",
            hint="name its folder: --app ./path/of/the/package",
        )
    raise UsageError(
        f"the module of `go.mod` has {len(found)} main packages; expected one of {', '.join(found)}",
        hint=f"--app ./{found[0]}",
    )


def _command_packages(folder: Folder) -> Iterator[str]:
    for name in ("", *sorted(folder.names(_COMMANDS))):
        path = f"{_COMMANDS}/{name}" if name else _COMMANDS
        if is_main_package(folder, path):
            yield path


def _other_packages(folder: Folder) -> Iterator[str]:
    for name in sorted(folder.names("")):
        if name not in _NO_COMMANDS and not name.startswith((".", "_")):
            paths = (name, *(f"{name}/{inner}" for inner in sorted(folder.names(name))))
            yield from (path for path in paths if is_main_package(folder, path))


def _built_packages(folder: Folder) -> list[tuple[str, str]]:
    """Return what a Dockerfile or a Makefile builds or runs: the program's name, or empty, and the package.

    *Source*: go help build: without `-o` the program has its package's name.
    """
    texts = (folder.read(name) or "" for name in (*DOCKERFILES, "Makefile"))
    lines = (match["words"].split() for text in texts for match in _BUILT.finditer(text.replace("\\\n", " ")))
    return [one for one in map(_built_by, lines) if ".." not in one[1].split("/")]


def _built_by(words: list[str]) -> tuple[str, str]:
    at = words.index("-o") + 1 if "-o" in words else len(words)
    out = words[at].strip("\"'") if words[at:] else ""
    said = next((word for k, word in enumerate(words) if k != at and word.startswith("./")), ".")
    path = normpath(said.rpartition("/")[0] if said.endswith(".go") else said).removeprefix(".")
    return basename(out) or basename(path), path


def _is_source(name: str) -> bool:
    return name.endswith(".go") and not name.endswith("_test.go")


def _text(folder: Folder, path: str, name: str) -> str:
    return folder.read(f"{path}/{name}" if path else name) or ""

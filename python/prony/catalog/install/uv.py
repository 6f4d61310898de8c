"""Runs uv with its cache inside Prony's and with pip's settings: as the keeper where no package's code runs,
else as a build.

Which of the caller's variables a build may see, by their whole names.

Packages run code when they are built, and a name that only begins like a setting may hold a secret
(UV_PUBLISH_TOKEN, CARGO_REGISTRY_TOKEN, GOOGLE_API_KEY). An address of an index may hold a password too:
whoever builds needs it to fetch.

Environments for interpreters that uv does not install for: their own pip fills a folder beside them.

A Python before 3.8 has no environments that uv could make, and Python 2 none at all. So its packages lie in a
folder, and a program of two lines starts the interpreter with that folder on its path. The lock is uv's, and
its hashes are required.
"""

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from prony.catalog.install.child import Children, FinishedCommand
from prony.catalog.install.interpreter import Interpreter
from prony.catalog.install.pip_settings import configuration_files, home_folder, pip_settings, uv_settings
from prony.core.errors import HostError
from prony.core.users import SUBJECT_PATH, RunAs, find_uv, first_unreadable, make_passable, own_folder
from prony.sandbox.building import BuildTask

_COMMON = frozenset(
    (
        *("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
        *("LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"),
        *("TZ", "PATH", "CC", "CXX"),
        *("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_TIMEOUT"),
    )
)
_UV = frozenset(
    (
        *("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"),
        *("UV_FIND_LINKS", "UV_NO_INDEX", "UV_INDEX_STRATEGY", "UV_INSECURE_HOST"),
        *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_OFFLINE", "UV_CONFIG_FILE"),
        *("UV_NO_CONFIG", "UV_EXCLUDE_NEWER", "UV_HTTP_TIMEOUT", "UV_HTTP_CONNECT_TIMEOUT"),
        *("UV_HTTP_RETRIES", "UV_REQUEST_TIMEOUT", "UV_KEYRING_PROVIDER", "UV_CONCURRENT_BUILDS"),
        *(
            "UV_CONCURRENT_DOWNLOADS",
            "UV_CONCURRENT_INSTALLS",
            "UV_PYTHON_INSTALL_DIR",
            "UV_PYTHON_PREFERENCE",
        ),
        *("UV_PYTHON_INSTALL_MIRROR", "UV_PYPY_INSTALL_MIRROR"),
    )
)
# Where an ordinary user's uv finds that user's settings.
_OWN_PLACES = frozenset(("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "NETRC", "SSL_CLIENT_CERT"))
_CARGO = frozenset(
    (
        *("CARGO_HTTP_CAINFO", "CARGO_HTTP_CHECK_REVOKE", "CARGO_HTTP_MULTIPLEXING", "CARGO_HTTP_PROXY"),
        *("CARGO_HTTP_TIMEOUT", "CARGO_NET_GIT_FETCH_WITH_CLI", "CARGO_NET_OFFLINE", "CARGO_NET_RETRY"),
        *("CARGO_BUILD_JOBS", "CARGO_REGISTRIES_CRATES_IO_PROTOCOL"),
    )
)
_GO = frozenset(
    (
        *("GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB"),
        *("GONOSUMDB", "GOINSECURE", "GOFLAGS", "GOTOOLCHAIN"),
        *("GOVCS", "GOROOT", "GOAMD64", "GOARCH"),
        *("GOOS", "GOMAXPROCS", "GO111MODULE"),
    )
)
# npm reads its settings in any case, proxies are written in any.
_NPM = frozenset(
    f"npm_config_{name}"
    for name in (
        *("registry", "proxy", "https_proxy", "noproxy", "cafile", "strict_ssl"),
        *("fetch_timeout", "fetch_retries", "offline", "prefer_offline"),
    )
)
_PROXIES = frozenset(("http_proxy", "https_proxy", "all_proxy", "no_proxy"))


def passes_to_uv(name: str) -> bool:
    """Return whether uv may see a variable.

    >>> passes_to_uv("HTTPS_PROXY"), passes_to_uv("UV_PUBLISH_TOKEN")
    (True, False)
    """
    return name in _COMMON | _UV or name.lower() in _PROXIES


def passes_to_own_uv(name: str) -> bool:
    """Return whether uv may see a variable of its own user: where the user's settings lie, too.

    >>> passes_to_own_uv("HOME"), passes_to_own_uv("GITHUB_TOKEN")
    (True, False)
    """
    return passes_to_uv(name) or name in _OWN_PLACES


def passes_to_tools(name: str) -> bool:
    """Return whether other languages' tools may see a variable: uv's settings too, for entries that call it.

    >>> passes_to_tools("GOPROXY"), passes_to_tools("GOOGLE_API_KEY")
    (True, False)
    """
    return passes_to_uv(name) or name in _CARGO | _GO or name.lower() in _NPM


# Lines of uv's output that do not name the cause.
_NO_CAUSE = (
    *("Using ", "Creating ", "Resolved ", "Activate ", "Downloading ", "Downloaded ", "Building ", "Built "),
    *("No solution found", "warning:", "hint:"),
)

_LONGEST_CAUSE = 400


@dataclass(frozen=True, slots=True)
class Uv:
    """uv at ``path``, with its ``environment``; it runs in ``folder``, which holds no project.

    The keeper's cache is shared by all builds of environments, and no build can write it.
    """

    path: str
    environment: Mapping[str, str]
    folder: Path
    children: Children

    def fetch(self, *arguments: str) -> FinishedCommand:
        """Run uv as the keeper: only with ``arguments`` by which it runs no package's code.

        *Errors*: OSError when the disk is full.
        """
        done = self.children.run(
            self._command(arguments), self.environment, self.folder, by=self.children.keeper
        )
        done.check_room(self.folder)
        return done

    def build(self, *arguments: str, project: Path | None, writable: Sequence[Path] = ()) -> FinishedCommand:
        """Run uv as a build, which may write ``writable``; ``project``: where relative paths begin.

        *Errors*: HostError, OSError when the disk is full.
        """
        folder = project or Path("/")
        task = BuildTask(self._command(arguments), self.environment, folder, writable, covered=project)
        done = self.children.build(task)
        done.check_room(self.folder)
        return done

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return [self.path, "--no-progress", "--color", "never", *arguments]


def open_uv(children: Children) -> Uv:
    """Return uv, ready to run.

    *Errors*: HostError when there is none, or the cache cannot be written.
    """
    keeper = children.keeper
    home = own_folder(own_folder(keeper.cache / "store", keeper, 0o700) / "home", keeper)
    return Uv(_program(children), _environment(keeper, home), home, children)


def build_environment(builder: RunAs) -> dict[str, str]:
    """Return the environment of commands that build an entry, without a home: each has its own.

    Programs are searched where subjects will find them.

    *Errors*: HostError when the cache cannot be written.
    """
    return _tool_environment(builder)


def probe_environment(user: RunAs) -> dict[str, str]:
    """Return the environment of commands that print an entry's version, as the user that runs it.

    Their home is an empty folder that nobody writes: what one subject left there would be read by the next.

    *Errors*: HostError when the cache cannot be written.
    """
    home = own_folder(user.cache / "empty", replace(user, drop=False), 0o555)
    return _tool_environment(user) | {"HOME": str(home)}


def _tool_environment(user: RunAs) -> dict[str, str]:
    passed = {name: value for name, value in os.environ.items() if passes_to_tools(name)}
    if "SSL_CERT_FILE" in passed:
        passed["SSL_CERT_FILE"] = _readable(Path(passed["SSL_CERT_FILE"]), user)
    return {
        **passed,
        "PATH": SUBJECT_PATH,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def last_words(done: FinishedCommand) -> str:
    """Return the last lines of a command's standard error, or else of its standard output."""
    lines = [line.rstrip() for line in (done.log.strip() or done.output.strip()).splitlines()]
    return "\n".join(lines[-12:])


def cause(done: FinishedCommand) -> str:
    """Return in a line or two why a command failed, from its standard error.

    >>> cause(FinishedCommand(1, "", "error: No solution found\\n  cause: Because a needs b"))
    'Because a needs b'
    >>> cause(FinishedCommand(1, "", "error: Request failed\\n  cause: Connection refused"))
    'Request failed: Connection refused'
    """
    words = ""
    for line in done.log.splitlines():
        stripped = line.strip(" ×╰─▶│├·").removeprefix("error: ")
        if stripped and not stripped.startswith(_NO_CAUSE):
            joint = ": " if stripped.startswith("cause: ") else " "
            words += (joint if words else "") + stripped.removeprefix("cause: ")
    words = words or f"it ended with status {done.status} and without a message"
    return words if len(words) <= _LONGEST_CAUSE else f"{words[:_LONGEST_CAUSE]}…"


def _own_files(own: Mapping[str, str], home: Path) -> Mapping[str, str]:
    """Return where an ordinary user's uv finds that user's settings, also where it has another home."""
    named = {"XDG_CONFIG_HOME": home / ".config", "NETRC": home / ".netrc"}
    return {
        name: own.get(name) or str(path)
        for name, path in named.items()
        if own.get(name) or os.access(path, os.R_OK)
    }


def _environment(keeper: RunAs, home: Path) -> dict[str, str]:
    own = dict(os.environ)
    settings = own | uv_settings(own, configuration_files(own, home_folder()))
    passes = passes_to_uv if keeper.drop else passes_to_own_uv
    environment = {name: value for name, value in settings.items() if passes(name)}
    environment |= {"HOME": str(home)} if keeper.drop else _own_files(own, home_folder())
    if "SSL_CERT_FILE" in environment:
        environment["SSL_CERT_FILE"] = _readable(Path(environment["SSL_CERT_FILE"]), keeper)
    # Copies: a file that several environments share would be changed in all of them.
    fixed = {"UV_LINK_MODE": "copy", "UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}
    return environment | {"UV_CACHE_DIR": str(home.with_name("uv"))} | fixed


def _program(children: Children) -> str:
    path, builder = find_uv(), children.builder
    asked = [path, "--version"]
    if not builder.drop or children.run(asked, {"PATH": os.defpath}, Path("/"), by=builder).ok:
        return path
    return _copied(Path(path), builder)


def _readable(file: Path, user: RunAs) -> str:
    is_readable = not os.access(file, os.R_OK) or first_unreadable(file, user) is None
    return str(file) if is_readable else _copied(file, user)


def _copied(file: Path, user: RunAs) -> str:
    """Copy ``file`` into the cache, where ``user`` can read and run it, and return the copy's path."""
    status = file.stat()
    target = user.cache / "tools" / f"{file.stem}-{status.st_size}-{status.st_mtime_ns}{file.suffix}"
    if not target.exists():
        draft = target.with_name(f".draft-{os.getpid()}-{target.name}")
        try:
            make_passable(target.parent)
            shutil.copyfile(file, draft)
            draft.chmod(0o755 if os.access(file, os.X_OK) else 0o644)
            draft.rename(target)
        except OSError as error:
            raise HostError(
                f"cannot copy `{file}` to `{target}`: {error.strerror}",
                hint="choose another place with the environment variable PRONY_CACHE",
            ) from error
    return str(target)


# --- environments for interpreters that uv does not install for -------------------------------------------


# What builds the others must be there before them: no isolated build could download it with its hash.
# (Twisted asks for the last one when it is built.)
_TOOLS = ("setuptools", "wheel", "incremental")
_NAMES_AN_ERROR = re.compile(r"\berror: |cannot find -l|No such file or directory")
_BLOCK = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)

_FINISH = """
import os, sys
folder, interpreter, text = sys.argv[1:]
program = os.path.join(folder, "python")
with open(program, "w") as file:
    file.write(text)
os.chmod(program, 0o755)
old, new = ("#!" + interpreter).encode(), ("#!" + program).encode()
for name in os.listdir(folder):
    path = os.path.join(folder, name)
    with open(path, "rb") as file:
        content = file.read()
    if content.startswith(old):
        with open(path, "wb") as file:
            file.write(new + content[len(old):])
"""


def filled_by_pip(
    children: Children,
    interpreter: Interpreter,
    lock_file: Path,
    target: Path,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> FinishedCommand:
    """Install what ``lock_file`` says below ``target``, and return how the last command ended. ``variables``:
    what the packages' builds read from their environment.

    Afterwards ``target/bin/python`` is the interpreter with these packages, also in the programs beside it.

    *Errors*: HostError when the cache cannot be written.
    """
    pip = _pip(interpreter)
    if pip is None:
        return FinishedCommand(127, "", f"`{interpreter.path}` has no pip of its own (ensurepip)")
    packages = target / "lib" / f"python{interpreter.minor}" / "site-packages"
    environment = _pip_environment(children)
    environment = {**environment, **_libraries(interpreter, environment.get("LDFLAGS", "")), **variables}
    environment |= {"PYTHONPATH": str(packages)}
    install = [str(interpreter.path), "-s", str(pip), "install", "--no-deps", "--require-hashes"]
    install += ["--ignore-installed", "--no-cache-dir", "--no-warn-script-location", "--prefix", str(target)]
    tools = lock_file.with_name("tools.txt")
    tools.write_text(_tools(lock_file.read_text()))
    tools.chmod(0o644)
    for command in (
        [*install, "-r", str(tools)],
        [*install, "--no-build-isolation", "-r", str(lock_file)],
        [str(interpreter.path), "-c", _FINISH, str(target / "bin"), *_starter(interpreter.path, packages)],
    ):
        done = children.build(BuildTask(command, environment, target, (target,)))
        if not done.ok:
            return replace(done, log=f"{_cause(done)}\n{done.log}")
    return done


def _cause(done: FinishedCommand) -> str:
    """Return the first line of an output that names an error: what pip says after it is what it did then."""
    lines = (line.strip() for line in done.log.splitlines())
    return next((f"error: {line}" for line in lines if _NAMES_AN_ERROR.search(line)), "")


def _libraries(interpreter: Interpreter, flags: str) -> Mapping[str, str]:
    """Return how a compiler finds the library of an interpreter that is not where it was built. ``flags``:
    what the linker gets otherwise.

    *Source*: GCC manual, Environment Variables; ld(1), -rpath: a build that names such a path, as that of the
    interpreter does, ignores LD_RUN_PATH.
    """
    folder = str(interpreter.path.parent.parent / "lib")
    linked = f"{flags} -Wl,-rpath,{folder}".strip()
    return {"LIBRARY_PATH": folder, "LD_RUN_PATH": folder, "LDFLAGS": linked}


def _pip(interpreter: Interpreter) -> Path | None:
    """Return the pip that comes with an interpreter, a wheel that runs as it is."""
    library = interpreter.path.parent.parent / "lib" / f"python{interpreter.minor}"
    found = sorted((library / "ensurepip" / "_bundled").glob("pip-*.whl"))
    return found[-1] / "pip" if found else None


def _tools(lock: str) -> str:
    """Return those parts of a lock that build others.

    >>> _tools("a==1 \\\\\\n    --hash=x\\nwheel==2 \\\\\\n    --hash=y\\n")
    'wheel==2 \\\\\\n    --hash=y\\n'
    """
    return "".join(part for part in _BLOCK.split(lock) if part.partition("==")[0] in _TOOLS)


def _starter(interpreter: Path, packages: Path) -> tuple[str, str]:
    """Return the interpreter, and a program that is it with these packages; what a caller sets comes first,
    as it does in an environment.
    """
    # What embeds it, as Apache does, looks for its library where it was built.
    library = shlex.quote(str(interpreter.parent.parent / "lib"))
    own = f"LD_LIBRARY_PATH={library}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
    path = f"PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}{shlex.quote(str(packages))} PYTHONNOUSERSITE=1"
    return str(interpreter), f'#!/bin/sh\n{own} {path} exec {shlex.quote(str(interpreter))} "$@"\n'


def _pip_environment(children: Children) -> Mapping[str, str]:
    settings = pip_settings(os.environ, configuration_files(os.environ, home_folder()))
    # What leads to an index is the build's relay, not the user's proxy.
    settings.pop("PIP_PROXY", None)
    return {**build_environment(children.builder), **settings, "PIP_CONFIG_FILE": os.devnull}

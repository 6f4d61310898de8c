"""A command that starts a server, as a unit of systemd and as the line that starts it in a container. Pure.

Both start what the command starts: with its folder, its variables and its words.

>>> parsed("cd /srv/shop && A=1 KEY=\\"$KEY\\" /opt/gunicorn shop:app").words
('/opt/gunicorn', 'shop:app')
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prony.catalog.launch.commands import OWN_CERTIFICATE, OWN_KEY
from prony.core.safe_text import escaped
from prony.core.units import seconds
from prony.model.launch import StopRule

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PROGRAM = re.compile(r"(?:/usr)?/bin/|/venv/bin/")
_SHARED = ("/usr/", "/bin/", "/lib/", "/etc/")
# What systemd reads before a program's name, root's rights among them.
_PREFIXES = tuple("@-:+!|")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is started, and where. ``command``: as a report prints it. ``image``: a container's, and
    ``install``: the commands that put the server into it, in a shell's words; both empty: not known.
    """

    name: str
    command: str
    user: str = "nobody"
    stop: StopRule = field(default_factory=StopRule)
    image: str = ""
    install: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A command of one program. ``asked``: the variables that it takes from the shell that starts it;
    ``files``: what Prony writes for it, and the words that do.
    """

    folder: str
    variables: Mapping[str, str]
    asked: tuple[str, ...]
    words: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def parsed(command: str, place: str = "/etc/prony") -> Parsed | None:
    """Return a command's parts; None: it is not one program's, and only a shell can read it. ``place``: the
    folder of the files that Prony writes for it.
    """
    words = _words(command)
    if len(words) < 4 or words[0] != "cd" or words[2] != "&&":
        return None
    files, own = _files(words[3:])
    start = next((k for k, word in enumerate(own) if not _VARIABLE.match(word)), None)
    if start is None or "&&" in own or own[start].startswith(_PREFIXES):
        return None
    pairs = [word.partition("=")[::2] for word in own[:start]]
    asked = tuple(name for name, value in pairs if value == f"${name}")
    variables = {name: value for name, value in pairs if name not in asked}
    placed = tuple(f"{place}/{word}" if word in files else word for word in own[start:])
    return Parsed(
        words[1], variables, asked, placed, {f"{place}/{name}": line for name, line in files.items()}
    )


def _files(words: list[str]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the files that Prony writes first, with the words that do, and the words of the program."""
    found: dict[str, tuple[str, ...]] = {}
    while words[:2] == ["prony", "servers"] and "&&" in words:
        *line, arrow, name = words[: words.index("&&")]
        if arrow != ">" or line.count(">") or not _FILE.fullmatch(name):
            break
        found[name] = tuple(line)
        words = words[words.index("&&") + 1 :]
    return found, words


def _words(command: str) -> list[str]:
    """Return a line's words; none of several lines, nor of one with a quote that does not end."""
    if "\n" in command:
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def unit_text(one: Deployment) -> str:
    """Return the unit, with the line of a container as a comment at its end.

    *Source*: systemd.service(5), systemd.exec(5), systemd.resource-control(5).
    """
    warned = [f"# Look before you install it: {one_line}." for one_line in cautions(one)]
    return "\n".join([*warned, *_unit_lines(one), "", *_container_comment(one)])


def cautions(one: Deployment) -> list[str]:
    """Return what of it may do harm to a whole machine, each as half a sentence."""
    found = parsed(one.command)
    said = ["it runs as root"] if one.user in ("root", "0") else []
    if found is None:
        return [*said, "a shell reads its command"]
    return [*said, f"its folder is {escaped(found.folder)}"] if _is_broad(found.folder) else said


def _is_broad(folder: str) -> bool:
    """Return whether a folder is the root, or one of its own: whole systems are below, not an app."""
    return len([part for part in folder.split("/") if part not in ("", ".")]) < 2 or ".." in folder.split("/")


def container_line(one: Deployment) -> str | None:
    """Return what starts it in a container on the host's network; None where that is not known."""
    found = parsed(one.command, _place(one))
    if found is None or not one.image or _is_broad(found.folder):
        return None
    words = [_PROGRAM.split(found.words[0])[-1], *found.words[1:]]
    variables = [f"{name}={value}" for name, value in found.variables.items()]
    line = shlex.join(["exec", "env", *variables, *words] if variables else ["exec", *words])
    inside = f"{one.install} && {line}" if one.install else line
    options = [
        *("--network", "host", "--workdir", found.folder),
        *(word for folder in _mounted(found) for word in ("--volume", folder)),
        *(word for name in found.asked for word in ("--env", name)),
    ]
    return f"docker run --rm {shlex.join(options)} {one.image} sh -c {shlex.quote(inside)}"


def _mounted(found: Parsed) -> Iterator[str]:
    """Yield the folders that the command needs and an image does not have."""
    yield f"{found.folder}:{found.folder}"
    yield from (f"{name}:{name}:ro" for name in found.files)
    first = found.words[0]
    if first.startswith("/") and not first.startswith(_SHARED) and "/venv/bin/" not in first:
        folder = first.rpartition("/")[0]
        if not folder.startswith(found.folder) and not _is_broad(folder):
            yield f"{folder}:{folder}:ro"


# --- systemd ----------------------------------------------------------------------------------------------


def _place(one: Deployment) -> str:
    """Return the folder of the files that only root may write, and its user reads."""
    return f"/etc/{_name(one)}"


def _name(one: Deployment) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", one.name).strip("-")


def _unit_lines(one: Deployment) -> Iterator[str]:
    found = parsed(one.command, _place(one))
    yield from (
        "[Unit]",
        f"Description={_specified(' '.join(one.name.split()))}, started as Prony starts it",
        "After=network.target",
        "",
    )
    yield from ("[Service]", f"User={one.user}")
    if found is None:
        yield f"ExecStart=/bin/sh -c {_quoted(one.command.replace(chr(10), ' '))}"
    else:
        yield f"WorkingDirectory={_specified(found.folder)}"
        yield from _variables(one, found)
        yield from _certificate(found)
        for name, line in found.files.items():
            folder = shlex.quote(_place(one))
            yield escaped(f"# Once, as root: mkdir -p {folder} && {shlex.join(line)} > {shlex.quote(name)}")
        yield f"ExecStart={' '.join(map(_quoted, found.words))}"
    yield f"KillSignal={one.stop.signal}"
    yield f"TimeoutStopSec={seconds(one.stop.timeout_ns):g}"
    yield "Restart=on-failure"
    yield from (f"{name}={value}" for name, value in one.limits.items())
    yield from ("", "[Install]", "WantedBy=multi-user.target")


def _variables(one: Deployment, found: Parsed) -> Iterator[str]:
    if found.variables:
        shown = (_assigned(f"{name}={value}") for name, value in found.variables.items())
        yield f"Environment={' '.join(shown)}"
    if found.asked:
        yield f"# A file that sets {', '.join(found.asked)}; only root may read it."
        yield f"EnvironmentFile=/etc/{_name(one)}.env"


def _certificate(found: Parsed) -> Iterator[str]:
    if OWN_KEY in found.words:
        names = f"{OWN_CERTIFICATE} and {OWN_KEY}"
        yield f"# {names} stand for files of your own, which its user must be able to read."


def _quoted(word: str) -> str:
    """Return a word of a command; `$` and `%` stand for themselves.

    >>> _quoted('a b'), _quoted('50%')
    ('"a b"', '50%%')
    """
    return _in_quotes(_specified(word).replace("$", "$$"))


def _assigned(text: str) -> str:
    return _in_quotes(_specified(text))


def _in_quotes(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _specified(text: str) -> str:
    return text.replace("%", "%%")


def _container_comment(one: Deployment) -> Sequence[str]:
    line = container_line(one)
    # A line break, as in the name of a package of a strange archive, would begin a line of the unit.
    if line is None or not line.isprintable():
        return ["# Prony knows no container for it: it starts more than one program, or is built elsewhere."]
    return ["# The same in a container, on the host's network:", f"# {line}"]

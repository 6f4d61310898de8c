"""What a Dockerfile says of its image: what of the app's folder lies where, and what starts there. Pure.

>>> text = 'FROM python\\nWORKDIR /srv\\nCOPY web .\\nENV DEBUG=0\\nCMD ["gunicorn", "shop:app"]'
>>> image = read_image({"Dockerfile": text}.get, "Dockerfile")
>>> image.starts(as_text(image.command)), image.base, image.laid, dict(image.environment)
('gunicorn shop:app', '/srv', 'web', {'DEBUG': '0'})
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import basename, join, normpath

from prony.catalog.discover.sources import Read

DOCKERFILES = (
    *("Dockerfile", "Containerfile", "Dockerfile.prod", "Dockerfile.production", "docker/Dockerfile"),
    *("build/package/Dockerfile", "build/Dockerfile", "deploy/Dockerfile"),
)
"""Where people keep it; the image is built from the folder itself."""

_VARIABLE = re.compile(r"\$\{?(\w+)(?::-[^}]*)?\}?")
_NAME = re.compile(r"[A-Za-z_]\w*")
# *Source*: the Dockerfiles of Docker's images of PHP and of FrankenPHP: CMD.
_OWN = {
    r"(?:\S*/)?php:\S*fpm\S*": "php-fpm",
    r"(?:\S*/)?php:\S*apache\S*": "apache2-foreground",
    r"(?:\S*/)?frankenphp(?::\S*)?": "frankenphp run --config /etc/caddy/Caddyfile",
}
# No image has more; one that copies from itself has each twice.
_MOST_COPIED, _LONGEST, _LONGEST_VALUE = 500, 20_000, 300


@dataclass(frozen=True, slots=True)
class _Copied:
    """What of the app's folder, by its ``path`` there, lies ``at`` a path of the image; ``.``: all of it.
    ``is_carried``: from another stage.
    """

    at: str
    path: str
    is_folder: bool
    is_carried: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """What the last stage has. ``origin``: the image that it begins with. ``base``: the folder in which it
    works, or empty. ``entry`` and ``command``: as they are written; ``arguments``: of the build;
    ``environment``: what is set when it runs.
    """

    origin: str = ""
    base: str = ""
    entry: str = ""
    command: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    copied: tuple[_Copied, ...] = ()

    @property
    def copies(self) -> tuple[tuple[str, str], ...]:
        """What lies where: a path of the image, and one in the app's folder."""
        return tuple((one.at, one.path) for one in self.copied)

    @property
    def laid(self) -> str:
        """The only folder whose content lies where it works, beside files; empty: none, or all does."""
        here = self.place(".")
        found = {one.path for one in self.copied if one.at == here and one.is_folder and not one.is_carried}
        return next(iter(found)) if len(found) == 1 and found != {"."} else ""

    def starts(self, command: str) -> str:
        """Return what starts with ``command`` in the place of its own, as a shell reads it; without any of
        its own, what its origin starts, as far as that is known.
        """
        if not (self.entry or command):
            return command_of_origin(self.origin)
        if self.entry and exec_form(self.entry) is None:
            return self.entry  # that a shell reads gets no command
        return " ".join(filter(None, (as_text(self.entry), command)))

    def place(self, path: str) -> str:
        """Return the whole path of one that an instruction names."""
        known = {**self.arguments, **self.environment}
        filled = _VARIABLE.sub(lambda match: known.get(match[1], match[0])[:_LONGEST_VALUE], path)
        return normpath(join("/", self.base, filled))


def command_of_origin(image: str) -> str:
    """Return what an image of Docker's starts by itself; empty: it is not known.

    >>> command_of_origin("docker.io/library/php:8.3-fpm-alpine")
    'php-fpm'
    """
    return next((command for named, command in _OWN.items() if re.fullmatch(named, image)), "")


def read_image(read: Read, name: str, target: str = "") -> Image | None:
    """Return the image of the Dockerfile ``name``, built from the folder of ``read``; None without one.
    ``target``: the stage that is built; empty: the last.

    *Source*: Dockerfile reference.
    """
    text = read(name)
    if not text:
        return None
    stages: dict[str, Image] = {}
    name = ""
    for keyword, rest in _instructions(text):
        image = stages.get(name, Image())
        if keyword == "FROM":
            origin, *more = [word for word in rest.split() if not word.startswith("--")] or [""]
            name = more[-1].lower() if len(more) == 2 else str(len(stages) - ("" in stages))
            begun = stages.get(origin.lower(), Image(origin=origin))
            stages[name] = replace(begun, arguments=image.arguments)
        else:
            stages[name] = _after(image, keyword, rest, stages, read)
    return stages.get(target.lower() or name, stages.get(name))


def _after(image: Image, keyword: str, rest: str, stages: Mapping[str, Image], read: Read) -> Image:
    match keyword:
        case "ARG" if "=" in rest:
            return replace(image, arguments={**image.arguments, **dict(assignments(rest))})
        case "ENV":
            return replace(image, environment={**image.environment, **dict(assignments(rest))})
        case "WORKDIR":
            return replace(image, base=image.place(rest))
        case "ENTRYPOINT" | "CMD":
            entry, command = (rest, image.command) if keyword == "ENTRYPOINT" else (image.entry, rest)
            return replace(image, entry=entry, command=command)
        case "COPY" | "ADD":
            return replace(image, copied=(*image.copied, *_copied(image, rest, stages, read))[:_MOST_COPIED])
    return image


def _copied(image: Image, rest: str, stages: Mapping[str, Image], read: Read) -> Iterator[_Copied]:
    words = exec_form(rest) or rest.split()
    origin = next((word.removeprefix("--from=") for word in words if word.startswith("--from=")), None)
    *sources, target = [word for word in words if not word.startswith("--")] or [""]
    at = image.place(target)
    is_inside = len(sources) > 1 or target.endswith("/") or at == image.place(".")
    for source in sources:
        path = normpath(source.lstrip("/") or ".")
        if origin is not None:
            yield from _carried(stages.get(origin.lower(), Image()), source, at)
        elif not path.startswith("..") and not set("*?[") & set(path):
            is_folder = _is_folder(read, path)
            yield _Copied(at if is_folder or not is_inside else join(at, basename(path)), path, is_folder)


def _is_folder(read: Read, path: str) -> bool:
    text = read(path)
    return path == "." or (text == "" if text is not None else "." not in basename(path))


def _carried(image: Image, source: str, at: str) -> Iterator[_Copied]:
    """Yield what of the app's folder comes from a stage, where the ``source`` in it is copied to ``at``."""
    place = image.place(source)
    for one in image.copied:
        if one.at == place or one.at.startswith(f"{place}/"):
            yield replace(one, at=at + one.at.removeprefix(place), is_carried=True)
        elif one.is_folder and place.startswith(f"{one.at}/"):
            inner = normpath(join(one.path, place.removeprefix(f"{one.at}/")))
            yield _Copied(at, inner, is_folder=True, is_carried=True)


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    kept = "\n".join(line for line in _without_texts(text) if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\[ \t]*\n", " ", kept).splitlines():
        keyword, _, rest = line.strip().partition(" ")
        if keyword and len(line) < _LONGEST:
            yield keyword.upper(), rest.strip()


# *Source*: Dockerfile reference, Here-Documents.
_HERE = re.compile(r"^\s*(?:RUN|COPY|ADD)\b.*?(?<!<)<<-?[\"']?(?P<end>[A-Za-z_]\w*)", re.IGNORECASE)


def _without_texts(text: str) -> Iterator[str]:
    """Yield the lines of a Dockerfile without the texts that stand in it for a shell or a file."""
    lines = text.splitlines()
    ends, end = {line.strip() for line in lines}, ""
    for line in lines:
        if end:
            end = "" if line.strip() == end else end
            continue
        yield line
        match = _HERE.match(line[:_LONGEST])
        end = match["end"] if match and match["end"] in ends else ""


def place_of(base: str, laid: str, copies: Sequence[tuple[str, str]]) -> str:
    """Return the folder, in the app's, whose content lies at ``base``; empty: all of it, or none."""
    outer = [(at, path) for at, path in copies if len(at) > 1 and f"{base}/".startswith(f"{at}/")]
    at, path = max(outer, key=lambda pair: len(pair[0]), default=(base, "."))
    inner = "" if at == base else normpath(join(path, base[len(at) + 1 :]))
    return laid or ("" if inner == "." else inner)


def exec_form(written: str) -> Sequence[str] | None:
    """Return the words of a command that no shell reads; None for one that a shell reads."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return None
    return [str(word) for word in found] if isinstance(found, list) else None


def as_text(written: str) -> str:
    """Return a command of either form as a shell reads it."""
    words = exec_form(written)
    return written if words is None else shell_text(words)


def shell_text(words: Sequence[str]) -> str:
    """Return words as one text. A command that a shell is given is read as that shell reads it."""
    by_shell = len(words) == 3 and basename(words[0]) in ("sh", "bash")
    return words[2] if by_shell and re.fullmatch(r"-[a-z]*c", words[1]) else shlex.join(words)


def assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield `NAME=value` of a line; of Docker's older form, `NAME value`, too."""
    try:
        words = shlex.split(text)
    except ValueError:
        return
    if words and "=" not in words[0]:
        words = [f"{words[0]}={' '.join(words[1:])}"]
    for word in words:
        name, equals, value = word.partition("=")
        if equals and _NAME.fullmatch(name):
            yield name, value

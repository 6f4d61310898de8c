"""The commands of the services in Compose files. Pure.

>>> text = "services: {web: {command: gunicorn shop:app, environment: {MODE: live}}}"
>>> found = composed({"compose.yaml": text}.get, ".")[0]
>>> found.source, found.text, dict(found.environment)
('`command` of `web` in compose.yaml', 'gunicorn shop:app', {'MODE': 'live'})
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from posixpath import normpath

from prony.catalog.discover.configuration import yaml_table
from prony.catalog.discover.images import (
    Image,
    as_text,
    command_of_origin,
    place_of,
    read_image,
    shell_text,
)
from prony.catalog.discover.sources import Read, Written, read_below

# *Source*: Compose specification, The Compose file; of several files that for production.
COMPOSE = (
    *(f"docker-compose.{kind}.yml" for kind in ("production", "prod")),
    *(f"compose.{kind}.{end}" for kind in ("production", "prod") for end in ("yaml", "yml")),
    *("production.yml", "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"),
)
"""The names of Compose files, the one that counts first."""


def composed(read: Read, context: str) -> list[Written]:
    """Return the commands of the services that Compose builds from ``context``, a folder beside its file."""
    return [found for name in COMPOSE for found in _of_compose(read, name, context)]


def services(read: Read, name: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield name and table of each service in the Compose file ``name``."""
    found = yaml_table(read(name)).get("services")
    for service, table in found.items() if isinstance(found, dict) else ():
        if isinstance(table, dict):
            yield str(service), table


def _of_compose(read: Read, name: str, context: str) -> Iterator[Written]:
    """Yield what services start, of those with ports first: others may only work off a queue.

    *Source*: Compose specification, Services: command, entrypoint, environment, image, ports, working_dir;
    Build: dockerfile, target.
    """
    there = sorted(services(read, name), key=lambda one: not one[1].get("ports"))
    hosts = [host for host, _ in there]
    for service, table in there:
        build = table.get("build")
        options = build if isinstance(build, dict) else {}
        file, target = (str(options.get(key) or "") for key in ("dockerfile", "target"))
        origin = "" if build else str(table.get("image") or "")
        words = {key: found for key in ("entrypoint", "command") if (found := _command(table.get(key)))}
        if context_of(build) != context or not (words or file or target or command_of_origin(origin)):
            continue
        inner = read_below(read, context)
        made = read_image(inner, normpath(file or "Dockerfile"), target) if build else None
        image = made or Image(origin=origin)
        said = words.get("command") or ("" if words else as_text(image.command))
        # Compose reads `$$` as one.
        text = f"{words['entrypoint']} {said}".strip() if "entrypoint" in words else image.starts(said)
        base = str(table.get("working_dir") or image.base)
        copies = (*image.copies, *_mounted(table.get("volumes")))
        laid = dict(_mounted(table.get("volumes"))).get(base, image.laid if base == image.base else "")
        if text:
            usual = "build" if build else "image"
            key = next((key for key in ("command", "entrypoint") if key in words), usual)
            plain = _plain_of(table.get("environment"), [host for host in hosts if host != service])
            yield Written(
                f"`{key}` of `{service}` in {name}",
                text.replace("$$", "$"),
                {**image.environment, **plain},
                base,
                _named_of(table, plain),
                "" if laid == "." else place_of(base, laid, copies),
                copies,
                env_file=next(filter(read, _files_of(table)), "") if context == "." else "",
                several=_several(table),
            )


def _several(table: Mapping[str, object]) -> str:
    """Return what says that a service runs in several containers; empty: it is one.

    *Source*: Compose specification, Services: scale; Deploy: replicas.
    """
    deploy = table.get("deploy")
    replicas = deploy.get("replicas") if isinstance(deploy, dict) else None
    said = {"deploy.replicas": replicas, "scale": table.get("scale")}
    return next((f"`{key}: {count}`" for key, count in said.items() if count not in (None, 0, 1)), "")


# An address, a path that only a container has, or what Compose itself fills in; and who may use a service.
_OF_NETWORK = re.compile(r"://|@|\$|^/|docker\.internal")
_OF_ACCOUNT = re.compile(r"pass|pwd|credential|dsn|auth", re.IGNORECASE)


def _plain_of(environment: object, hosts: Sequence[str]) -> dict[str, str]:
    """Return a service's variables if none is an address or a path there: they belong together."""
    table = environment if isinstance(environment, dict) else {}
    lines = environment if isinstance(environment, list) else []
    pairs = [(name, value) for name, _, value in (str(one).partition("=") for one in lines)]
    pairs += [(str(name), _yaml_text(value)) for name, value in table.items()]
    is_host = re.compile(rf"(?:{'|'.join(map(re.escape, hosts))})(?::\d+)?")
    apart = any(
        not value or _OF_NETWORK.search(value) or is_host.fullmatch(value) or _OF_ACCOUNT.search(name)
        for name, value in pairs
    )
    return {} if apart else dict(pairs)


def _yaml_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _named_of(table: Mapping[str, object], passed: Mapping[str, str]) -> tuple[str, ...]:
    """Return what of a service is named and not passed on: its variables."""
    asked, files = [] if passed else _names_of(table.get("environment")), _files_of(table)
    of_network = [f"its variables, which are of its network: {', '.join(asked)}"] if asked else []
    return (*of_network, *(f"the variables in {file}: --env-file {file}" for file in files))


def _files_of(table: Mapping[str, object]) -> list[str]:
    written = table.get("env_file")
    files = written if isinstance(written, list) else [written]
    paths = (one.get("path") if isinstance(one, dict) else one for one in files)
    return [normpath(path) for path in paths if isinstance(path, str) and ".." not in path.split("/")]


def _mounted(volumes: object) -> Iterator[tuple[str, str]]:
    """Yield where a folder beside the file is mounted, and that folder."""
    for one in volumes if isinstance(volumes, list) else ():
        source, _, target = one.partition(":") if isinstance(one, str) else ("", "", "")
        if source.startswith(".") and not source.startswith("..") and target:
            yield target.partition(":")[0], normpath(source)


def context_of(build: object) -> str:
    """Return the folder that a service is built from; one that has only an image gets the file's folder."""
    found = build.get("context") if isinstance(build, dict) else build
    return str(found or ".").removeprefix("./").rstrip("/") or "."


def _command(written: object) -> str:
    if isinstance(written, list):
        return shell_text([str(word) for word in written])
    return " ".join(written.split()) if isinstance(written, str) else ""


def _names_of(environment: object) -> list[str]:
    names = environment if isinstance(environment, dict | list) else ()
    return [str(one).partition("=")[0] for one in names]

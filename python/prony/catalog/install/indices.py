"""What a build may reach: the hosts of the package indices that the user has configured.

Pure, except that it reads pip's and uv's configuration files. Must not know what is built.

>>> sorted(hosts_in("https://me:word@mirror.example:8443/simple other"))
[('mirror.example', 8443)]
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import getproxies_environment

from prony.catalog.install.pip_settings import configuration_files, home_folder, uv_settings

# Each tool's own index, and where that has its files.
_USUAL = {
    "python": ("pypi.org", "files.pythonhosted.org"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "npm": ("registry.npmjs.org",),
    "rust": ("index.crates.io", "static.crates.io"),
}
_OF_SETTINGS = frozenset(
    (
        *("uv_default_index", "uv_index", "uv_index_url", "uv_extra_index_url", "uv_find_links"),
        *("goproxy", "gosumdb", "npm_config_registry"),
    )
)
_ADDRESS = re.compile(r"(https?)://(?:[^/@\s]*@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d+))?")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Ways:
    """The ``hosts`` that a build may reach, and the user's own ``proxies`` on the way to them."""

    hosts: frozenset[tuple[str, int]] = frozenset()
    proxies: Mapping[str, str] = field(default_factory=dict)


def ways_out(environment: Mapping[str, str], more: Sequence[str] = ()) -> Ways:
    """Return what a build may reach by the settings in ``environment`` and in the configuration files.

    ``more``: the names of further hosts.
    """
    files = configuration_files(environment, home_folder())
    settings = {**environment, **uv_settings(environment, files)}
    values = [value for name, value in settings.items() if name.lower() in _OF_SETTINGS]
    values += [_text(file) for file in _uv_files(environment)]
    usual = {(host, 443) for hosts in _USUAL.values() for host in hosts}
    named = {address for value in values for address in hosts_in(value)}
    asked = {(host.lower(), port) for host in more for port in _PORTS.values()}
    return Ways(frozenset(usual | named | asked), _proxies(settings))


def hosts_in(text: str) -> frozenset[tuple[str, int]]:
    """Return the hosts and ports of the addresses in ``text``."""
    return frozenset(
        (host.strip("[]").lower(), int(port or _PORTS[scheme]))
        for scheme, host, port in _ADDRESS.findall(text)
    )


def _uv_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return uv's configuration files. *Source*: uv, Configuration files."""
    chosen, base = environment.get("UV_CONFIG_FILE"), environment.get("XDG_CONFIG_HOME")
    own = Path(chosen) if chosen else (Path(base) if base else home_folder() / ".config") / "uv" / "uv.toml"
    return (own, Path("/etc/uv/uv.toml"))


def _text(file: Path) -> str:
    """Return the addresses in a file of uv's settings, whatever their keys are."""
    try:
        return str(tomllib.loads(file.read_text()))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ""


def _proxies(settings: Mapping[str, str]) -> Mapping[str, str]:
    found = dict(getproxies_environment())
    if settings.get("ALL_PROXY"):
        found.setdefault("all", settings["ALL_PROXY"])
    return found

"""Translates pip's settings into uv's: users who have configured pip need not configure uv.

Pure, except that it reads pip's configuration files.

Source: pip documentation, "Configuration"; uv documentation, "Environment variables" and "Compatibility with
pip".
"""

import configparser
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

# pip's option -> uv's variable, the variables of uv that already set it, and how several values are joined.
_TRANSLATED = {
    "index-url": ("UV_DEFAULT_INDEX", ("UV_DEFAULT_INDEX", "UV_INDEX_URL"), " "),
    "extra-index-url": ("UV_EXTRA_INDEX_URL", ("UV_EXTRA_INDEX_URL", "UV_INDEX"), " "),
    "find-links": ("UV_FIND_LINKS", ("UV_FIND_LINKS",), ","),
    "cert": ("SSL_CERT_FILE", ("SSL_CERT_FILE",), ""),
    "client-cert": ("SSL_CLIENT_CERT", ("SSL_CLIENT_CERT",), ""),
    "trusted-host": ("UV_INSECURE_HOST", ("UV_INSECURE_HOST",), " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", ("UV_HTTP_TIMEOUT", "UV_REQUEST_TIMEOUT", "HTTP_TIMEOUT"), ""),
    "no-index": ("UV_NO_INDEX", ("UV_NO_INDEX",), ""),
    "proxy": ("ALL_PROXY", ("ALL_PROXY", "HTTPS_PROXY", "https_proxy", "all_proxy"), ""),
}

# pip's other name for the same option.
_ALIASES = {"timeout": "default-timeout", "pypi-url": "index-url"}

_SECTIONS = ("global", "install")


def uv_settings(environment: Mapping[str, str], files: Iterable[Path]) -> dict[str, str]:
    """Return uv's variables for the settings of pip in ``environment`` and the configuration ``files``.

    Variables of uv that are already set win. pip takes the best version from all its indexes, uv by default
    the version from the first index that has the package: with an extra index from pip, uv is set to behave
    like pip.
    """
    pip = configured(files) | _from_environment(environment)
    settings: dict[str, str] = {}
    for option, (variable, said_by, joint) in _TRANSLATED.items():
        value = _value(option, pip.get(option, ""), joint)
        if value and not any(environment.get(name) for name in said_by):
            settings[variable] = value
    if "UV_EXTRA_INDEX_URL" in settings and "UV_INDEX_STRATEGY" not in environment:
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return settings


def pip_settings(environment: Mapping[str, str], files: Iterable[Path]) -> dict[str, str]:
    """Return pip's variables for its settings in ``environment`` and the configuration ``files``: those that
    say where packages come from. An index that only uv was given is pip's too.

    >>> pip_settings({"PIP_TIMEOUT": "9", "PIP_USER": "1", "UV_DEFAULT_INDEX": "https://x/simple"}, ())
    {'PIP_DEFAULT_TIMEOUT': '9', 'PIP_INDEX_URL': 'https://x/simple'}
    """
    pip = configured(files) | _from_environment(environment)
    found = {name: pip[name] for name in _TRANSLATED if pip.get(name)}
    if index := environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL"):
        found.setdefault("index-url", index)
    return {f"PIP_{name.upper().replace('-', '_')}": value for name, value in found.items()}


def configuration_files(environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Return pip's configuration files; later ones win.

    The system's, the user's, the virtual environment's, the chosen one.
    """
    chosen = environment.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return ()
    system = [
        Path(folder) / "pip" / "pip.conf"
        for folder in environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    ]
    base = environment.get("XDG_CONFIG_HOME")
    user = [home / ".pip" / "pip.conf", (Path(base) if base else home / ".config") / "pip" / "pip.conf"]
    last = [Path(sys.prefix) / "pip.conf", *([Path(chosen)] if chosen else [])]
    return (*system, Path("/etc/pip.conf"), *user, *last)


def configured(files: Iterable[Path]) -> dict[str, str]:
    """Return pip's options for installing from ``files``; unreadable files are left out."""
    options: dict[str, str] = {}
    for file in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(file.read_text())
        except (OSError, UnicodeDecodeError, configparser.Error):
            continue
        for section in _SECTIONS:
            if parser.has_section(section):
                options.update({_option(key): value for key, value in parser.items(section)})
    return options


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        _option(name.removeprefix("PIP_").lower()): value
        for name, value in environment.items()
        if name.startswith("PIP_") and value
    }


def _option(name: str) -> str:
    dashed = name.replace("_", "-")
    return _ALIASES.get(dashed, dashed)


def _value(option: str, value: str, joint: str) -> str:
    if option == "no-index":
        return "true" if value.strip().lower() in {"1", "true", "yes", "on"} else ""
    return joint.join(value.split()) if joint else value.strip()


def home_folder() -> Path:
    """Return the home of this user; a folder that does not exist where the machine knows no such user."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def _main() -> None:
    """Print the settings as shell assignments, for ``scripts/setup``, which runs before Prony is
    installed.
    """
    files = configuration_files(os.environ, home_folder())
    for name, value in uv_settings(os.environ, files).items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")


if __name__ == "__main__":
    _main()

"""A program in PHP, on PHP's own server. Pure.

>>> from prony.catalog.discover.sources import Folder
>>> php_program(Folder({"public/index.php": ""}.get, lambda path: []), "").command
('{php}', '-S', '{host}:{port}', '-t', 'public')
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from prony.catalog.discover.sources import Folder, Program, Written
from prony.core.errors import UsageError

PHP_TOOLS = {"php": ("php", "php8*", "/usr/bin/php8*")}
# *Source*: the documentation of Symfony, Laravel, Slim and Drupal on the root of the web server.
_ROOTS = ("public", "web", "")

# *Source*: Docker's images of PHP; Heroku documentation, Customizing Web Server and Runtime Settings for PHP.
_POOL = re.compile(
    r"(?:\S*/)?(?:php-fpm[\d.]*|apache2-foreground|heroku-php-(?:apache2|nginx))(?:\s(?P<words>.*))?"
)
# Where Docker's images of PHP have the pages.
_SERVED = "/var/www/html"


def page_of_pool(folder: Folder, written: Sequence[Written]) -> tuple[str, str]:
    """Return the page that PHP-FPM serves, or PHP in Apache, and in words what Prony starts for it; both
    empty: nothing does.

    *Errors*: UsageError when it needs packages that are not there.
    """
    for one in written:
        match = _POOL.fullmatch(one.text.strip())
        if match is None:
            continue
        pages = (f"{root}/index.php" if root else "index.php" for root in _served(match, one, folder))
        if page := next(filter(folder.has, pages), ""):
            _refuse_without_packages(folder)
            is_apache = "apache2-foreground" in match[0]
            starts = "starts PHP in Apache, which Prony does not" if is_apache else "starts PHP-FPM"
            place = "in its place `{}` on PHP-FPM" if is_apache else "the first is `{}` on it"
            return page, f"{one.source} {starts}: {place.format(page)}, behind nginx{_left_out(one)}"
    return "", ""


def _left_out(written: Written) -> str:
    names = ", ".join(written.environment)
    said = (*((f"its variables {names}: --env NAME=value passes one",) if names else ()), *written.left_out)
    return f"; left out: {', '.join(said)}" if said else ""


def _served(match: re.Match[str], written: Written, folder: Folder) -> Iterator[str]:
    """Yield the folders that may be served, the likeliest first."""
    said = [word.strip("/") for word in (match["words"] or "").split() if not word.startswith("-")]
    if "heroku" in match[0]:
        yield from said[-1:]
    there = [written.placed(f"{_SERVED}{inner}") for inner in ("/public", "")]
    yield from (path.removeprefix(".") for path in there if not path.startswith("/"))
    yield from _roots(folder)


def is_php(folder: Folder) -> bool:
    """Return whether a folder has a page that PHP serves."""
    return next(_roots(folder), None) is not None


def php_program(folder: Folder, typed: str) -> Program:
    """Return the program of a folder: ``typed`` is a page, which serves its folder, or a router's script.

    *Source*: PHP manual, Built-in web server.

    *Errors*: UsageError when it needs packages that are not there.
    """
    root = next(_roots(folder), "")
    served: tuple[str, ...] = ("-t", root or ".")
    source = f"{root}/index.php" if root else "index.php"
    if typed:
        place, _, name = typed.rpartition("/")
        source = typed
        served = ("-t", place or ".") if name == "index.php" else (typed,)
    return php_command(folder, source, ("-S", "{host}:{port}", *served))


def php_command(folder: Folder, source: str, words: tuple[str, ...]) -> Program:
    """Return the program that PHP's own command starts with these words.

    *Errors*: UsageError when it needs packages that are not there.
    """
    _refuse_without_packages(folder)
    return Program(
        name="php",
        language="other",
        source=source,
        command=("{php}", *words),
        tools=PHP_TOOLS,
        packages="vendor, as it is" if folder.has("vendor/autoload.php") else "",
        debian=("php-cli",),
    )


def _roots(folder: Folder) -> Iterator[str]:
    return (root for root in _ROOTS if folder.has(f"{root}/index.php" if root else "index.php"))


def _refuse_without_packages(folder: Folder) -> None:
    """Refuse an app whose packages nobody installed: Prony takes PHP's packages from Debian alone."""
    text = folder.read("composer.json")
    if not text or folder.has("vendor/autoload.php"):
        return
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"cannot read `composer.json`: {error}") from None
    wanted = manifest.get("require") if isinstance(manifest, dict) else None
    packages = _packages(wanted if isinstance(wanted, dict) else {})
    if packages:
        raise UsageError(
            f"`composer.json` requires {', '.join(packages)}, and there is no `vendor/autoload.php`",
            hint="composer install --no-dev installs what composer.lock says; Prony measures what lies there",
        )


def _packages(wanted: Mapping[str, object]) -> list[str]:
    """Return the names of packages; those without a vendor are PHP itself and its extensions."""
    return [name for name in wanted if "/" in name]

"""The address in the command of a program that listens on a port itself. Pure.

>>> at_our_address(["node", "shop.js", "--port", "4000"])
['node', 'shop.js', '--port', '{port}']
"""

import re
from collections.abc import Mapping, Sequence

# Servers that are given an address by their options: those, and what Prony writes in their place. The words
# go before the others where a file may end them, else behind them.
# *Source*: puma(1), rackup(1), unicorn(1); The Rails Command Line; Mojolicious::Command::daemon; PHP manual,
# Built-in web server.
_HOST_AND_PORT = ("--host", "{host}", "--port", "{port}")
_ADDRESSES: Mapping[str, tuple[frozenset[str], tuple[str, ...]]] = {
    "puma": (frozenset({"-b", "--bind", "-p", "--port"}), ("-b", "tcp://{host}:{port}")),
    "rackup": (frozenset({"-o", "--host", "-p", "--port"}), _HOST_AND_PORT),
    "unicorn": (frozenset({"-l", "--listen", "-o", "--host", "-p", "--port"}), ("-l", "{host}:{port}")),
    "rails": (frozenset({"-b", "--binding", "-p", "--port"}), ("-b", "{host}", "-p", "{port}")),
    "perl": (frozenset({"-l", "--listen"}), ("-l", "http://{host}:{port}")),
    "morbo": (frozenset({"-l", "--listen"}), ("-l", "http://{host}:{port}")),
    "php": (frozenset({"-S"}), ("-S", "{host}:{port}")),
}
_BEHIND = ("rails", "perl")
PLAIN = re.compile(r"[\w@%+=:,./ -]+")
"""Words that a shell would only split at blanks, and that hold no placeholder."""

# How programs of one's own name an option that holds an address.
_NAMED = re.compile(
    r"--?(?:addr|address|listen|listen-addr|listen-address|bind|http|http-addr|host|hostname|port|p)"
)
_ADDRESS = re.compile(r"(?P<scheme>[a-z]+://)?[\w.*\[\]:-]*?:\d{2,5}")


def at_our_address(words: Sequence[str]) -> list[str]:
    """Return a command's words with Prony's address in the place of its own.

    >>> at_our_address(["puma", "-p", "3000", "-C", "config/puma.rb"])
    ['puma', '-b', 'tcp://{host}:{port}', '-C', 'config/puma.rb']
    >>> at_our_address(["links", "-addr", "127.0.0.1:8080", "-q"])
    ['links', '-addr', '{host}:{port}', '-q']
    """
    name = words[0].rpartition("/")[2]
    options, address = _ADDRESSES.get(name, (frozenset[str](), ()))
    if not address or (name == "perl" and not {"daemon", "prefork"} & set(words)):
        return with_address(words)
    rest = _without(words[1:], options)
    if name == "php" and len(rest) == len(words) - 1:
        return with_address(words)
    return [words[0], *rest, *address] if name in _BEHIND else [words[0], *address, *rest]


def _without(words: Sequence[str], options: frozenset[str]) -> list[str]:
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in options:
            del rest[:1]
        elif word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def with_address(words: Sequence[str]) -> list[str]:
    """Return the words of a program of one's own with Prony's address where an option's name says one."""
    placed: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        if equals and _NAMED.fullmatch(option):
            placed.append(f"{option}={_our_value(option, value)}")
        elif placed and _NAMED.fullmatch(placed[-1]):
            placed.append(_our_value(placed[-1], word))
        else:
            placed.append(word)
    return placed


def _our_value(option: str, value: str) -> str:
    if match := _ADDRESS.fullmatch(value):
        return f"{match['scheme'] or ''}{{host}}:{{port}}"
    name = option.lstrip("-")
    if name in ("host", "hostname"):
        return "{host}"
    return "{port}" if value.isdecimal() else value

"""How the command of each server is read: a table. Pure.

>>> SERVERS["gunicorn"].aliases["-w"]
'--workers'

The address in the command of a program that listens on a port itself. Pure.

>>> at_our_address(["node", "shop.js", "--port", "4000"])
['node', 'shop.js', '--port', '{port}']
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a server's command is read. ``entry``: the catalogue's; ``bind``: the words of an address.

    ``aliases``: short options, and longer names of the same; ``flags``: options without a value. Prony takes
    the place of those that are ``replaced``; files of ``logs`` become standard output. ``app``: options that
    name the app. ``configuration``: its option, and the file that is read without it; ``configured``: options
    by other names that they have there. ``variables``: the options of numbers by the variables that are read
    where neither the command nor the configuration says them.
    """

    entry: str
    bind: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    logs: frozenset[str] = frozenset()
    app: frozenset[str] = frozenset()
    factory: frozenset[str] = frozenset()
    configuration: tuple[str, str] = ("", "")
    configured: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


def options_named(text: str) -> frozenset[str]:
    """Return long options by their names."""
    return frozenset(f"--{name}" for name in text.split())


def aliases(text: str) -> dict[str, str]:
    """Return what short options, and longer names, stand for: pairs of words.

    >>> aliases("-b bind --file wsgi-file")
    {'-b': '--bind', '--file': '--wsgi-file'}
    """
    words = text.split()
    return {short: f"--{name}" for short, name in zip(words[::2], words[1::2], strict=True)}


_HOST_AND_PORT = ("--host", "{host}", "--port", "{port}")
ROOTS = ("--chdir", "--app-dir", "--pythonpath", "--working-dir")
"""The options that name the folder where imports begin."""
PATHS = options_named("chdir config pythonpath env-file log-config app-dir working-dir")

# *Source*: Plack::Runner, Starman, Twiggy.
_PLACK = ServerCommand(
    entry="http-server-psgi",
    bind=_HOST_AND_PORT,
    aliases=aliases(
        "-l listen -o host -p port -S socket -D daemonize -s server -E env -I include -a app -R Reload "
        "-r reload"
    ),
    flags=options_named("daemonize preload-app disable-keepalive disable-proctitle reload"),
    replaced=options_named("listen host port socket daemonize daemon pid user group server"),
    logs=options_named("access-log error-log"),
    app=options_named("app"),
)

# *Source*: each server's manual on its command's options; gunicorn/config.py, uvicorn/main.py, hypercorn/
# __main__.py, granian/cli.py, waitress/adjustments.py, cheroot/cli.py, daphne/cli.py, uWSGI documentation,
# Options.
SERVERS: Mapping[str, ServerCommand] = {
    "gunicorn": ServerCommand(
        entry="gunicorn",
        bind=("--bind", "{host}:{port}"),
        aliases=aliases(
            "-b bind -w workers -k worker-class -c config -t timeout -D daemon -p pid -u user -g group "
            "-m umask -n name -e env -R enable-stdio-inheritance --log-file error-logfile"
        ),
        flags=options_named(
            "reload preload daemon reuse-port spew check-config print-config capture-output initgroups "
            "enable-stdio-inheritance disable-redirect-access-to-syslog proxy-protocol log-syslog "
            "strip-header-spaces do-handshake-on-connect suppress-ragged-eofs"
        ),
        replaced=options_named(
            "bind pid daemon user group umask certfile keyfile ca-certs ciphers ssl-version cert-reqs"
        ),
        logs=options_named("access-logfile error-logfile"),
        configuration=("--config", "gunicorn.conf.py"),
        configured={"keepalive": "--keep-alive"},
        variables={"WEB_CONCURRENCY": "--workers"},
    ),
    "uvicorn": ServerCommand(
        entry="uvicorn",
        bind=_HOST_AND_PORT,
        flags=options_named("reload access-log use-colors proxy-headers server-header date-header factory"),
        replaced=options_named(
            "host port uds fd ssl-keyfile ssl-certfile ssl-keyfile-password ssl-version ssl-cert-reqs "
            "ssl-ca-certs ssl-ciphers"
        ),
        factory=options_named("factory"),
        variables={"UVICORN_WORKERS": "--workers", "WEB_CONCURRENCY": "--workers"},
    ),
    "hypercorn": ServerCommand(
        entry="hypercorn",
        bind=("--bind", "{host}:{port}"),
        aliases=aliases("-b bind -w workers -k worker-class -c config -p pid"),
        flags=options_named("debug reload"),
        replaced=options_named(
            "bind insecure-bind quic-bind pid user group umask certfile keyfile keyfile-password ca-certs "
            "ciphers"
        ),
        logs=options_named("access-logfile error-logfile access-log error-log"),
        configuration=("--config", ""),
        configured={"keep_alive_timeout": "--keep-alive"},
    ),
    "granian": ServerCommand(
        entry="granian",
        bind=_HOST_AND_PORT,
        flags=options_named(
            "factory reload access-log log http1-keep-alive http1-pipeline-flush http2-adaptive-window "
            "respawn-failed-workers ws"
        ),
        replaced=options_named(
            "host port uds uds-permissions pid-file ssl-certificate ssl-keyfile ssl-keyfile-password ssl-ca "
            "ssl-crl"
        ),
        factory=options_named("factory"),
        variables={"GRANIAN_WORKERS": "--workers", "GRANIAN_BLOCKING_THREADS": "--blocking-threads"},
    ),
    "waitress-serve": ServerCommand(
        entry="waitress",
        bind=("--listen={host}:{port}",),
        flags=options_named(
            "call expose-tracebacks log-untrusted-proxy-headers clear-untrusted-proxy-headers "
            "log-socket-errors asyncore-use-poll"
        ),
        replaced=options_named("listen host port unix-socket unix-socket-perms ipv4 ipv6"),
        factory=options_named("call"),
    ),
    "cheroot": ServerCommand(
        entry="cheroot",
        bind=("--bind", "{host}:{port}"),
        replaced=options_named("bind"),
    ),
    "daphne": ServerCommand(
        entry="daphne",
        bind=("--bind", "{host}", "--port", "{port}"),
        aliases=aliases("-b bind -p port -u unix-socket -e endpoint -v verbosity"),
        flags=options_named("proxy-headers"),
        replaced=options_named("bind port unix-socket fd endpoint"),
        logs=options_named("access-log"),
    ),
    "uwsgi": ServerCommand(
        entry="uwsgi",
        bind=(),
        aliases=aliases(
            "-p processes --workers processes -M master -s socket -w wsgi --module wsgi -H home "
            "-T enable-threads -d daemonize -L disable-logging -l listen -i single-interpreter "
            "--file wsgi-file"
        ),
        flags=options_named(
            "master enable-threads lazy-apps lazy vacuum die-on-term need-app single-interpreter "
            "thunder-lock disable-logging strict no-orphans harakiri-verbose memory-report ignore-sigpipe "
            "ignore-write-errors disable-write-exception auto-procname log-master http-keepalive no-site "
            "manage-script-name py-call-osafterfork http-auto-chunked"
        ),
        replaced=options_named(
            "socket uwsgi-socket http-socket http11-socket http https fastcgi-socket scgi-socket "
            "chmod-socket chown-socket pidfile pidfile2 safe-pidfile daemonize daemonize2 logto logto2 uid "
            "gid home virtualenv venv pyhome plugin plugins stats stats-server http-to chdir"
        ),
        app=options_named("wsgi wsgi-file psgi callable mount manage-script-name"),
        configuration=("--ini", ""),
        variables={
            "UWSGI_PROCESSES": "--processes",
            "UWSGI_WORKERS": "--processes",
            "UWSGI_THREADS": "--threads",
        },
    ),
    "plackup": _PLACK,
    "starman": replace(_PLACK, entry="starman", bind=("--listen", "{host}:{port}")),
    "twiggy": replace(_PLACK, entry="twiggy", bind=("--listen", "{host}:{port}")),
}
# `plackup -s` names the server, whose own program is started; `HTTP::Server::PSGI` is its usual one.
OF_PLACK = {"Starman": "starman", "Twiggy": "twiggy", "Starlet": "starlet", "": "http-server-psgi"}
PASTE = "pserve"
"""Pyramid's program, which takes server, app and address from an ini file."""

# Programs that serve an app by themselves, and where they are given an address.
TOOLS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("flask", "quart", "fastapi", "sanic", "litestar"), _HOST_AND_PORT),
    "robyn": (),
}
SUBCOMMANDS = {"flask": ("run",), "quart": ("run",), "fastapi": ("run", "dev"), "litestar": ("run",)}
"""Of a program that has others too, what serves."""

ROBYN = {"ROBYN_HOST": "{host}", "ROBYN_PORT": "{port}"}
"""Robyn takes its address from no others. *Source*: robyn/__init__.py, start."""
TOOL_REPLACED = options_named("host port cert key tls unix fd uds")
TOOL_ALIASES = aliases("-h host -H host -p port -A app -w workers")
TOOL_FLAGS = options_named(
    "debug reload debugger with-threads fast single-process motd access-logs dev auto-reload factory "
    "proxy-headers"
)


# --- the address of a program that listens by itself ------------------------------------------------------


# Servers that are given an address by their options: those, and what Prony writes in their place. The words
# go before the others where a file may end them, else behind them.
# *Source*: puma(1), rackup(1), unicorn(1); The Rails Command Line; Mojolicious::Command::daemon; PHP manual,
# Built-in web server.
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

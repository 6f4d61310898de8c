"""A program that serves by itself, by a command that starts it. Pure.

>>> from prony.survey.sources import Folder
>>> folder = Folder({"serve": ""}.get, lambda path: [])
>>> program_of_process(folder, Written("`web` in Procfile", "./serve --port $PORT")).command
('{app_dir}/./serve', '--port', '{port}')
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from prony.errors import UsageError
from prony.survey.go import go_program
from prony.survey.node import NPM_TOOLS, node_program
from prony.survey.php import PHP_TOOLS
from prony.survey.sources import Folder, Program
from prony.survey.written import Written

_PYTHON = re.compile(r"python[\d.]*|gunicorn|uvicorn|hypercorn|daphne|granian|waitress-serve|uwsgi")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\})")
# Whatever else a shell would not only split at blanks.
_PLAIN = re.compile(r"[\w@%+=:,./ -]+")


def program_of_process(folder: Folder, written: Written) -> Program:
    """Return the program that the process starts, built as the folder's other files say.

    *Errors*: UsageError for a server of Python, which is chosen otherwise, and as those of the language.
    """
    command, source = written.text, written.source
    if _PYTHON.fullmatch(command.split(maxsplit=1)[0].rpartition("/")[2]):
        raise UsageError(
            f"{source} is `{command}`, which names no app in Python; expected `module:attribute` in it",
            hint="name the app, and Prony compares servers for it: --app module:attribute",
        )
    words = _words(command)
    if words is None:
        return _by_shell(written)
    first, rest = words[0], tuple(words[1:])
    match first:
        case "node" | "nodejs" | "npm":
            found = node_program(folder, "server.js")
            tool = "npm" if first == "npm" else "node"
            tools = NPM_TOOLS if tool == "npm" else found.tools
            return replace(found, command=(f"{{{tool}}}", *rest), source=source, tools=tools)
        case "php":
            return Program("php", "other", source, ("{php}", *rest), PHP_TOOLS, debian=("php-cli",))
        case _ if folder.has("go.mod") and not folder.has(first):
            built = go_program(folder, "")
            return replace(built, command=(*built.command, *rest), source=source)
    program = f"{{app_dir}}/{first}" if "/" in first else "{program}"
    tools = {} if "/" in first else {"program": (first,)}
    return Program(_name(first), "other", source, (program, *rest), tools)


def _words(command: str) -> Sequence[str] | None:
    """Return the words of a plain command, with placeholders for the port; null: a shell must read it."""
    is_plain = _PLAIN.fullmatch(_PORT.sub("PORT", command)) and not re.match(r"\w+=", command)
    return shlex.split(_PORT.sub("{port}", command)) if is_plain else None


def _by_shell(written: Written) -> Program:
    command, source = written.text, written.source
    line = _PORT.sub("$PORT", command)
    if "{" in line or "}" in line:
        raise UsageError(
            f"{source} is `{command}`, whose braces Prony does not pass to a shell",
            hint="write it into a script and name that: --command ./start.sh",
        )
    return Program("procfile", "other", source, ("{sh}", "-c", line), {"sh": ("sh",)})


def _name(program: str) -> str:
    """Return a server's name for a program.

    >>> _name("bin/Shop_Web.sh")
    'shop-web'
    """
    parts = re.split(r"[^a-z0-9]+", program.rpartition("/")[2].partition(".")[0].lower())
    return "-".join(part for part in parts if part) or "program"

"""What a ``Procfile`` says of the process that serves the web. Pure.

>>> web_process("web: gunicorn shop:app --workers 2\\nworker: python jobs.py")
'gunicorn shop:app --workers 2'
>>> target_in("gunicorn --workers 2 shop.web:app")
'shop.web:app'
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

# *Source*: Heroku documentation, The Procfile.
_WEB = re.compile(r"^web[ \t]*:[ \t]*(?P<command>\S.*?)[ \t]*$", re.MULTILINE)
_SOURCE = "`web` in Procfile"
_TARGET = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_PYTHON = re.compile(r"python[\d.]*|gunicorn|uvicorn|hypercorn|daphne|granian|waitress-serve|uwsgi")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\})")
# Whatever else a shell would not only split at blanks.
_PLAIN = re.compile(r"[\w@%+=:,./ -]+")


def web_process(text: str) -> str | None:
    """Return the command of the process ``web``; null without one."""
    found = _WEB.search(text)
    return found["command"] if found else None


def target_in(command: str) -> str | None:
    """Return the ``module:attribute`` that a command names, or Gunicorn's module; null when it names none."""
    words = command.split()
    named = next((word for word in words if _TARGET.fullmatch(word)), None)
    if named is None and words[:1] == ["gunicorn"]:
        return next((word for word in words[1:] if _MODULE.fullmatch(word)), None)
    return named


def program_of_process(folder: Folder, command: str) -> Program:
    """Return the program that the process starts, built as the folder's other files say.

    *Errors*: UsageError for a server of Python, which is chosen otherwise, and as those of the language.
    """
    if _PYTHON.fullmatch(command.split(maxsplit=1)[0].rpartition("/")[2]):
        raise UsageError(
            f"{_SOURCE} is `{command}`, which names no app in Python; expected `module:attribute` in it",
            hint="name the app, and Prony compares servers for it: --app module:attribute",
        )
    words = _words(command)
    if words is None:
        return _by_shell(command)
    first, rest = words[0], tuple(words[1:])
    match first:
        case "node" | "nodejs" | "npm":
            found = node_program(folder, "server.js")
            tool = "npm" if first == "npm" else "node"
            tools = NPM_TOOLS if tool == "npm" else found.tools
            return replace(found, command=(f"{{{tool}}}", *rest), source=_SOURCE, tools=tools)
        case "php":
            return Program("php", "other", _SOURCE, ("{php}", *rest), PHP_TOOLS, debian=("php-cli",))
        case _ if folder.has("go.mod") and not folder.has(first):
            built = go_program(folder, "")
            return replace(built, command=(*built.command, *rest), source=_SOURCE)
    program = f"{{app_dir}}/{first}" if "/" in first else "{program}"
    tools = {} if "/" in first else {"program": (first,)}
    return Program(_name(first), "other", _SOURCE, (program, *rest), tools)


def _words(command: str) -> Sequence[str] | None:
    """Return the words of a plain command, with placeholders for the port; null: a shell must read it."""
    is_plain = _PLAIN.fullmatch(_PORT.sub("PORT", command)) and not re.match(r"\w+=", command)
    return shlex.split(_PORT.sub("{port}", command)) if is_plain else None


def _by_shell(command: str) -> Program:
    line = _PORT.sub("$PORT", command)
    if "{" in line or "}" in line:
        raise UsageError(
            f"{_SOURCE} is `{command}`, whose braces Prony does not pass to a shell",
            hint="write it into a script and name that: --command ./start.sh",
        )
    return Program("procfile", "other", _SOURCE, ("{sh}", "-c", line), {"sh": ("sh",)})


def _name(program: str) -> str:
    """Return a server's name for a program.

    >>> _name("bin/Shop_Web.sh")
    'shop-web'
    """
    parts = re.split(r"[^a-z0-9]+", program.rpartition("/")[2].partition(".")[0].lower())
    return "-".join(part for part in parts if part) or "program"

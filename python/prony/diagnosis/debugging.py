"""D33: the server, or its runtime, runs in a mode that is for development.

Reloaders, checks and traces take time of each request. What an app does by itself (Django's DEBUG) shows in
none of these signs. *Source*: Python documentation, Python Development Mode; Flask, `flask run --debug`;
uvicorn, `--reload`; plackup(1), `-E`; Django, runserver.
"""

import re
from itertools import pairwise

from prony.diagnosis.evidence import Advice, Confidence, Evidence, Finding, Symptom

__all__ = ["debugging"]

_VARIABLES = ("PYTHONDEVMODE", "PYTHONASYNCIODEBUG", "FLASK_DEBUG", "DJANGO_DEBUG", "NODE_DEBUG")
_WORDS = ("--reload", "--debug", "--debugger", "runserver")
_ENVIRONMENTS = ("-E", "--env")
_BANNER = re.compile(
    r"(?i)this is a development server|debugger is active|starting development server at|"
    r"started reloader process|restarting with (?:stat|watchdog)"
)


def debugging(evidence: Evidence) -> list[Finding]:
    """Return a finding when its command, its environment or its log shows such a mode: the first sign."""
    sign = next(iter(_signs(evidence)), None)
    if sign is None:
        return []
    return [
        Finding(
            rule="D33",
            kind=Symptom.DEBUGGING,
            confidence=Confidence.CERTAIN,
            names={"sign": sign},
            advice=Advice.TURN_DEBUG_OFF,
        )
    ]


def _signs(evidence: Evidence) -> list[str]:
    words, environment = evidence.trial.command, evidence.cell.subject.app.environment
    pairs = pairwise(words)
    banner = _BANNER.search(evidence.trial.log.text)
    return [
        *(word for word in words if word in _WORDS),
        *(f"{first} {then}" for first, then in pairs if first in _ENVIRONMENTS and then == "development"),
        *(name for name in _VARIABLES if name in environment),
        *([banner[0].lower()] if banner else []),
    ]

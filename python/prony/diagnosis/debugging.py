"""D33: the server, or its runtime, runs in a mode that is for development.

Reloaders, checks and traces take time of each request. What an app does by itself (Django's DEBUG) shows in
none of these signs. *Source*: Python documentation, Python Development Mode; Flask, `flask run --debug`, and
flask/helpers.py, get_debug_flag; uvicorn, `--reload`; plackup(1), `-E`; Django, runserver.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom

WITH_CHECKS = Consequence(
    "with checks of development", "CPU for a request contains checks that production does without"
)
NO_DEBUG = Experiment("production mode", "measure it as in production; CPU for a request falls")
TURN_DEBUG_OFF = Advice("turn development mode off", "start it as in production")
DEBUGGING = Symptom(
    "development mode",
    Meaning(Bearing.ADDS, WITH_CHECKS, NO_DEBUG, TURN_DEBUG_OFF),
    "it runs in a mode for development: {sign}",
)
"""Name ``sign``: what shows it."""


# CPython takes any value but none as on; the others' readers know words for off.
_ANY_VALUE = ("PYTHONDEVMODE", "PYTHONASYNCIODEBUG")
_SWITCHES = ("FLASK_DEBUG", "DJANGO_DEBUG", "NODE_DEBUG")
_OFF = ("0", "false", "no", "off")
# Only likely: an option of the command prevails over PLACK_ENV, and Flask 2.3 has forgotten FLASK_ENV.
_MODES = ("FLASK_ENV", "PLACK_ENV")
_WORDS = ("--reload", "--debug", "--debugger", "runserver")
_ENVIRONMENTS = ("-E", "--env")
_BANNER = re.compile(
    r"(?i)this is a development server|debugger is active|starting development server at|"
    r"started reloader process|restarting with (?:stat|watchdog)"
)


def debugging(evidence: Evidence) -> list[Finding]:
    """Return a finding when its command, its environment or its log shows such a mode: the surest sign.

    *Assumptions*: archives have the names of an app's variables and not their values, which read as empty. So
    an empty one is likely on where any value is, and only possibly where there are words for off.
    """
    signs = [*_certain_signs(evidence), *_signs_of_variables(evidence.cell.subject.app.environment)]
    if not signs:
        return []
    sign, sure = min(signs, key=lambda one: list(Confidence).index(one[1]))
    return [Finding(DEBUGGING, sure, names={"sign": sign})]


def _certain_signs(evidence: Evidence) -> list[tuple[str, Confidence]]:
    words, banner = evidence.trial.command, _BANNER.search(evidence.trial.log.text)
    pairs = pairwise(words)
    signs = [
        *(word for word in words if word in _WORDS),
        *(f"{one} {then}" for one, then in pairs if one in _ENVIRONMENTS and then == "development"),
        *([banner[0].lower()] if banner else []),
    ]
    return [(sign, Confidence.CERTAIN) for sign in signs]


def _signs_of_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, Confidence]]:
    """Yield the variables that are on, or may be, and how sure that is."""
    for name, value in environment.items():
        if name in _ANY_VALUE:
            yield name, Confidence.CERTAIN if value else Confidence.LIKELY
        elif name in _SWITCHES and value.lower() not in _OFF:
            yield name, Confidence.CERTAIN if value else Confidence.POSSIBLE
        elif name in _MODES and value == "development" and not _is_off(environment, name):
            yield f"{name}={value}", Confidence.LIKELY


def _is_off(environment: Mapping[str, str], mode: str) -> bool:
    """Return whether a switch prevails: Flask's over its mode."""
    return mode == "FLASK_ENV" and environment.get("FLASK_DEBUG", "").lower() in _OFF

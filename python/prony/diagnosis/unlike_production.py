"""D33 and D40: a server that does not run as it does in production: to be developed with, or still cold.

D33: the server, or its runtime, runs in a mode that is for development.

Reloaders, checks and traces take time of each request. What an app does by itself (Django's DEBUG) shows in
none of these signs. *Source*: Python documentation, Python Development Mode; Flask, `flask run --debug`, and
flask/helpers.py, get_debug_flag; uvicorn, `--reload`; plackup(1), `-E`; Django, runserver.

D40: the server was slower in the first seconds of the window than later: it was not warm.

Caches fill, code is compiled, pools open connections. *Source*: Barrett and others, "Virtual machine warmup
blows hot and cold", OOPSLA (2017).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean

from prony.core.units import seconds
from prony.diagnosis.consumption import Consumption, Resource, consumption_of
from prony.diagnosis.evidence import Confidence, Evidence, Finding
from prony.diagnosis.kinds import Advice, Bearing, Consequence, Experiment, Meaning, Symptom
from prony.diagnosis.shared import CHANGING, LONGER_WARM_UP
from prony.figures.latency import read_distribution
from prony.figures.missing import Missing
from prony.figures.steady_state import paces_of
from prony.model.recording import Recording

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


# --- D40 --------------------------------------------------------------------------------------------------

WARM_UP_FIRST = Advice("warm up first", "use a longer warm-up")
STILL_COLD = Symptom(
    "still warming up",
    Meaning(Bearing.ADDS, CHANGING, LONGER_WARM_UP, WARM_UP_FIRST),
    "it did {early_per_s:rate} in the first {seconds:n second}, and {late_per_s:rate} after them: it "
    "was still warming up",
    shared="it was still warming up within the window",
)
"""``early_per_s`` in the first seconds, ``late_per_s`` at the end; ``seconds`` until then."""


_LEAST_SECONDS = 4
# The end's pace over the beginning's; between the two sides of the change no second lies in between.
_LEAST_GAIN = 1.3
_APART = 1.1
# Of the replies that the beginning lacks: three times what their number varies by, if they come at random.
_LEAST_SIGMAS = 3.0
_LEAST_ROUNDS = 2
# Of the slow seconds' CPU time: what others can have had, where it explains no such gain.
_MOST_OF_OTHERS = 0.1


def still_cold(evidence: Evidence) -> list[Finding]:
    """Return a finding when in a closed loop every second from some second on had a higher pace than every
    one before, by a tenth at least, and their means differ by 30 %; none where the slow seconds are less than
    two rounds of its connections, whose replies may come all at once, or where stages change the load.
    """
    recording, usage = evidence.trial.recording, consumption_of(evidence)
    if recording is None or usage is None or not evidence.is_ok:
        return []
    if recording.is_open or evidence.cell.workload.loop.stages:
        return []
    rate = _rate(recording)
    after = next((k for k in range(1, len(rate) - 1) if _is_step(rate[:k], rate[k:])), None)
    if after is None or after < _LEAST_ROUNDS * _reply_s(recording):
        return []
    if usage.contended and not _fills_its_cpus(evidence, usage, after):
        # Who gets the CPU less often is slower, warm or not; where its own threads fill it, nobody takes it.
        return []
    early, late = fmean(rate[:after]), fmean(rate[after:])
    return [
        Finding(STILL_COLD, Confidence.LIKELY, {"early_per_s": early, "late_per_s": late, "seconds": after})
    ]


def _rate(recording: Recording) -> Sequence[float]:
    """Return the pace of each second; none where it is unknown, or for a few seconds only."""
    paces = paces_of(recording)
    return () if isinstance(paces, Missing) or len(paces["rate"]) < _LEAST_SECONDS else paces["rate"]


def _reply_s(recording: Recording) -> float:
    """Return how long half of the replies took at most; 0 where nobody knows."""
    times = read_distribution(recording.distributions.ok_service)
    return seconds(times.histogram.value_at_quantile(0.5)) if times and times.histogram else 0.0


def _fills_its_cpus(evidence: Evidence, usage: Consumption, slow_s: int) -> bool:
    """Return whether the subject had nearly all of its CPUs' time, by the count of its control groups: what
    is left over of the whole window would be little of the slow seconds.
    """
    trial, length_ns = evidence.trial, evidence.length_ns
    counted = any(name.startswith("cgroup.") and name.endswith(".cpu_ns") for name in trial.counters)
    shared = trial.placement is None or trial.placement.shared
    if shared or not counted or length_ns is None:
        return False
    left = 1.0 - usage.shares.get(Resource.CPU, 0.0)
    return left * seconds(length_ns) <= _MOST_OF_OTHERS * slow_s


def _is_step(before: Sequence[float], after: Sequence[float]) -> bool:
    gained = fmean(after) >= _LEAST_GAIN * fmean(before)
    due = fmean(after) * len(before)
    many = due - sum(before) > _LEAST_SIGMAS * sqrt(due)
    return gained and many and min(after) >= _APART * max(before)

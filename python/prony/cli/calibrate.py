"""``prony calibrate``: what Prony costs on this machine, which limits hold, and whether its engine is fit."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prony.cli.flat import flattened, option
from prony.cli.options import MAX_SEED, run_as_option, share_cpus_option
from prony.cli.talk import say, show, status_of, terminate_as_interrupt
from prony.core.errors import ExitCode
from prony.core.units import seconds

if TYPE_CHECKING:
    from prony.study.calibration import Calibration
    from prony.study.calibration.bench import Effort
    from prony.study.calibration.run import Commission

EPILOG = """\
Examples:
  prony calibrate            what monitors and sandbox cost here, and whether the load engine is fit to
                             measure with (two and a half minutes); `prony host` shows it later
  prony calibrate --quick    fewer and shorter windows, wider intervals
  prony calibrate --json     the same as data
"""

# Start, contract and stop of the server; only for the estimate before the first trial ends.
TRIAL_OVERHEAD_S = 1.0


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """How thorough, and where."""

    quick: bool = option(False, "Fewer and shorter windows: about 45 s.", "--quick")
    seed: int = option(1, "Seed of the random order.", min=0, max=MAX_SEED)
    run_as: str | None = run_as_option()
    share_cpus: bool = share_cpus_option()
    as_json: bool = option(False, "Print JSON.", "--json")


@flattened
def calibrate(asked: CalibrateOptions) -> int:
    """Measure the cost of Prony's monitors and sandbox on this machine, which limits hold, and whether the
    load engine is fit to measure with: its ceiling, its send lag, known delays, its noise.

    The cache keeps the result until the machine changes; `prony host` shows it, and studies cite it.
    """
    from prony.cli.documents.calibration import calibration_document
    from prony.core.users import resolve_user
    from prony.report.formats.terminal import TerminalReporter
    from prony.sandbox.choice import gain_namespaces
    from prony.study.calibration import keep, to_json
    from prony.study.calibration.bench import QUICK, USUAL
    from prony.study.calibration.run import Commission

    gain_namespaces()
    user = resolve_user(asked.run_as)
    effort = QUICK if asked.quick else USUAL
    found = _measured(Commission(user, effort, asked.seed, asked.share_cpus), effort)
    if not isinstance(found, int):
        path = keep(found, user.cache)
        if asked.as_json:
            show(json.dumps(to_json(found), indent=2))
        else:
            TerminalReporter().write_report(calibration_document(found))
            say(f"\nkept in {path}; `prony host` shows it")
        return ExitCode.DONE
    say("interrupted: no result is kept")
    return found


def _measured(order: "Commission", effort: "Effort") -> "Calibration | int":
    """Return the result, or the exit status of an interruption."""
    from prony.cli.progress import StudyProgress
    from prony.study.calibration.run import run_calibration as run

    each_s = seconds(effort.window_ns + effort.warmup_ns) + TRIAL_OVERHEAD_S
    with terminate_as_interrupt(), StudyProgress(4 * effort.blocks, each_s) as progress:
        try:
            return run(order, progress)
        except KeyboardInterrupt as interrupt:
            return status_of(interrupt)

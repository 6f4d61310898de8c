"""What exit statuses mean, as the help and the reference show it."""

from prony.errors import ExitCode

MEANINGS = {
    ExitCode.DONE: "done; `run` and `load`: there are valid replies",
    ExitCode.VERDICT_NEGATIVE: (
        "failed: `compare` shows a change that `--fail-if` names; a condition of `load --fail-if` holds; "
        "`selftest` finds too many false verdicts, "
        "or a false verdict on a planted effect"
    ),
    ExitCode.USAGE: "an invalid command line, or an invalid file that it names",
    ExitCode.COULD_NOT_MEASURE: (
        "could not measure: no server starts, no valid reply, this machine lacks something; "
        "`compare`, `load`: the figures cannot decide `--fail-if`; "
        "with `--strict` also: a subject is unavailable, a trial does not count, or no subject qualifies"
    ),
    ExitCode.INTERNAL: "a fault in Prony itself",
    ExitCode.HUNG_UP: "SIGHUP; otherwise like 130",
    ExitCode.INTERRUPTED: (
        "Ctrl-C; finished trials are kept and reported, and of `load` the result so far is printed"
    ),
    ExitCode.TERMINATED: "SIGTERM; otherwise like 130",
}


def epilog() -> str:
    """Return the table for the end of ``prony --help``: a paragraph each, which click does not join."""
    return "\n\n".join(["Exit status:", *(f"{code:3}  {meaning}" for code, meaning in MEANINGS.items())])

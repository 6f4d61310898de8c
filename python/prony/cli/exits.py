"""What exit statuses mean, as the help and the reference tell it."""

from prony.errors import ExitCode

__all__ = ["MEANINGS", "epilog"]

MEANINGS = {
    ExitCode.DONE: "done; of `run` and `load`: there are valid replies",
    ExitCode.VERDICT_NEGATIVE: (
        "of `compare`: a change that `--fail-if` names is shown; of `selftest`: too many verdicts are "
        "false, or one on a planted effect is"
    ),
    ExitCode.USAGE: "the command line, or a file that it names, asks for what cannot be",
    ExitCode.COULD_NOT_MEASURE: (
        "could not measure: no server starts, no valid reply, this machine lacks something; "
        "of `compare`: what `--fail-if` names is not shown either way; "
        "with --strict also: a subject is unavailable, a trial does not count, or no subject qualifies"
    ),
    ExitCode.INTERNAL: "a fault in Prony itself",
    ExitCode.INTERRUPTED: "Ctrl-C; what was finished is kept and reported",
    ExitCode.TERMINATED: "SIGTERM or SIGHUP; as 130",
}


def epilog() -> str:
    """Return the table for the end of ``prony --help``: a paragraph each, which click does not join."""
    return "\n\n".join(["Exit status:", *(f"{code:3}  {told}" for code, told in MEANINGS.items())])

"""The catalogue on this machine: does every server install, start, answer rightly, take load and end.

For each server, variant, interface and wire, and each frontend before the servers that it names, one short
trial around an app, in its sandbox, with the engine beside it. Must not know the command line or reports.
"""

from prony.check.rows import names_to_check, subjects_to_check
from prony.check.run import CheckListener, check_servers
from prony.check.verdict import ServerCheck, verdict_of

__all__ = [
    "CheckListener",
    "ServerCheck",
    "check_servers",
    "names_to_check",
    "subjects_to_check",
    "verdict_of",
]

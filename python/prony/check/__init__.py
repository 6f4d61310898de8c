"""Checks the catalogue on this machine: each server must install, start, answer correctly, take load and
stop.

Runs one short trial with an app, in a sandbox, for each server, variant, interface and wire, and for each
frontend with the servers that it names. Must not know the command line or reports.
"""

from prony.check.run import (
    CheckListener,
    ServerCheck,
    check_servers,
    names_to_check,
    subjects_to_check,
    verdict_of,
)

__all__ = [
    "CheckListener",
    "ServerCheck",
    "check_servers",
    "names_to_check",
    "subjects_to_check",
    "verdict_of",
]

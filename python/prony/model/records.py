"""What an archive holds beside the central types: runs, resolved subjects, and stored trials."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prony.model.facts import Fingerprint, RunFacts, SubjectFacts
from prony.model.sandbox import SandboxFacts
from prony.model.trial import Trial


class RunStatus(StrEnum):
    """How a run ended. A run starts as ``INTERRUPTED``, so that a killed one stays so."""

    INTERRUPTED = "interrupted"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Run:
    """One invocation that measured into the archive; a resumed study has several."""

    id: int
    prony_version: str
    started_unix_ns: int
    ended_unix_ns: int | None
    status: RunStatus
    fingerprint: Fingerprint
    """The machine."""
    facts: RunFacts = RunFacts()
    """What it decided."""


@dataclass(frozen=True, slots=True)
class SubjectRecord:
    """A subject as it was resolved on this machine, or why it is unavailable. ``command_line`` is what a
    person types to start it, quoted for a shell, with paths that make sense outside a sandbox; ``settings``
    are all settings, defaults included; ``sandbox`` says what was enforced. ``unavailable`` is null, or the
    reason why it has no trials.
    """

    name: str
    server_version: str | None = None
    interpreter: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    lock_digest: str | None = None
    settings: Mapping[str, int | str] = field(default_factory=dict)
    command_line: str | None = None
    sandbox: SandboxFacts = SandboxFacts()
    facts: SubjectFacts = SubjectFacts()
    unavailable: str | None = None
    entry_digest: str | None = None
    """SHA-256 of what the catalogue and the app declare, so that a resumed study measures the same subject.
    """


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial with its place in the archive."""

    id: int
    run_id: int
    trial: Trial

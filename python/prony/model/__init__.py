"""The central types: what is measured, how, and what came of it.

Frozen values without I/O. A measuring side fills them and writes one Archive; a reading side reads them
from it. Times are integer nanoseconds; monotonic stamps are CLOCK_MONOTONIC. Must not know catalogue,
archive or engine.

>>> Workload(loop=OpenLoop(rate_per_s=550.0), stop=DurationStop(10_000_000_000)).describe()
'open loop, 550/s constant, 10 s'
"""

from prony.model.address import Address, AddressKind, Tls, TlsKey, TlsVersion, Wire
from prony.model.availability import INSTALLABLE, READY, Availability, AvailabilityKind
from prony.model.claims import ERROR_RATIO, TOLERANT, Claim, ClaimKind, Needs, Original
from prony.model.exchange import Check, Contract, Request
from prony.model.facts import (
    Fingerprint,
    Fitness,
    GeneratorFitness,
    RunFacts,
    SubjectFacts,
    TrialEvent,
    TrialFacts,
)
from prony.model.fault import Fault, FaultKind
from prony.model.launch import Launch, Readiness, RoleRule, StopRule
from prony.model.limit import GeneratorVerdict, Limit, Limited, LimitKind
from prony.model.observation import ListenerUsage, LogTail, Phase, ProcessRow, Sample, ThreadUsage
from prony.model.plan import Cell, Design, Plan, Precision
from prony.model.recording import Account, Recording
from prony.model.records import Run, RunStatus, SubjectRecord, TrialRecord
from prony.model.sandbox import (
    Ceiling,
    LimitHolding,
    LimitState,
    Network,
    Placement,
    SandboxChoice,
    SandboxFacts,
    SandboxKind,
)
from prony.model.subject import App, Frontend, Interface, Subject, is_named, is_of
from prony.model.trial import Failed, Invalid, Json, Ok, Outcome, Trial, TrialRole
from prony.model.workload import (
    MAX_CONNECTIONS,
    MAX_PATHS,
    MAX_RATE_PER_S,
    Arrivals,
    ClosedLoop,
    ConnectionStage,
    CountStop,
    DurationStop,
    EngineChoice,
    Loop,
    Mix,
    MixPath,
    OpenLoop,
    Pacing,
    RateStage,
    Stop,
    Workload,
    fault_of_mix,
    is_own_generator,
)

__all__ = [
    "ERROR_RATIO",
    "INSTALLABLE",
    "MAX_CONNECTIONS",
    "MAX_PATHS",
    "MAX_RATE_PER_S",
    "READY",
    "TOLERANT",
    "Account",
    "Address",
    "AddressKind",
    "App",
    "Arrivals",
    "Availability",
    "AvailabilityKind",
    "Ceiling",
    "Cell",
    "Check",
    "Claim",
    "ClaimKind",
    "ClosedLoop",
    "ConnectionStage",
    "Contract",
    "CountStop",
    "Design",
    "DurationStop",
    "EngineChoice",
    "Failed",
    "Fault",
    "FaultKind",
    "Fingerprint",
    "Fitness",
    "Frontend",
    "GeneratorFitness",
    "GeneratorVerdict",
    "Interface",
    "Invalid",
    "Json",
    "Launch",
    "Limit",
    "LimitHolding",
    "LimitKind",
    "LimitState",
    "Limited",
    "ListenerUsage",
    "LogTail",
    "Loop",
    "Mix",
    "MixPath",
    "Needs",
    "Network",
    "Ok",
    "OpenLoop",
    "Original",
    "Outcome",
    "Pacing",
    "Phase",
    "Placement",
    "Plan",
    "Precision",
    "ProcessRow",
    "RateStage",
    "Readiness",
    "Recording",
    "Request",
    "RoleRule",
    "Run",
    "RunFacts",
    "RunStatus",
    "Sample",
    "SandboxChoice",
    "SandboxFacts",
    "SandboxKind",
    "Stop",
    "StopRule",
    "Subject",
    "SubjectFacts",
    "SubjectRecord",
    "ThreadUsage",
    "Tls",
    "TlsKey",
    "TlsVersion",
    "Trial",
    "TrialEvent",
    "TrialFacts",
    "TrialRecord",
    "TrialRole",
    "Wire",
    "Workload",
    "fault_of_mix",
    "is_named",
    "is_of",
    "is_own_generator",
]

"""The central types: what is measured, how, and what came of it.

Frozen values without I/O. A measuring side fills them and writes one Archive; a reading side reads them
from it. Times are integer nanoseconds; monotonic stamps are CLOCK_MONOTONIC. Must not know catalogue,
archive or engine. A name's module is imported when the name is first asked for: a command needs few of them.

>>> from prony.model import DurationStop, OpenLoop, Workload
>>> Workload(loop=OpenLoop(rate_per_s=550.0), stop=DurationStop(10_000_000_000)).describe()
'open loop, 550/s constant, 10 s'
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.model.address import (
        Address,
        AddressKind,
        HttpVersion,
        Tls,
        TlsCipher,
        TlsKey,
        TlsVersion,
        Wire,
    )
    from prony.model.availability import INSTALLABLE, READY, Availability, AvailabilityKind
    from prony.model.claims import ERROR_RATIO, TOLERANT, Claim, ClaimKind, Needs, Original
    from prony.model.exchange import Check, Contract, Request
    from prony.model.facts import (
        CloseLook,
        CloseView,
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
    from prony.model.observation import (
        ListenerUsage,
        LogTail,
        Phase,
        ProcessRow,
        Sample,
        ThreadSchedule,
        ThreadUsage,
    )
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
    from prony.model.shapes import Json
    from prony.model.subject import App, Frontend, Interface, Subject, is_named, is_of
    from prony.model.trial import Failed, Invalid, Ok, Outcome, Trial, TrialRole
    from prony.model.workload import (
        ELSEWHERE,
        FLEET,
        LOCAL,
        MAX_CONNECTIONS,
        MAX_PATHS,
        MAX_RATE_PER_S,
        MAX_STREAMS,
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
        is_fleet,
        is_own_generator,
    )

__all__ = [
    "ELSEWHERE",
    "ERROR_RATIO",
    "FLEET",
    "INSTALLABLE",
    "LOCAL",
    "MAX_CONNECTIONS",
    "MAX_PATHS",
    "MAX_RATE_PER_S",
    "MAX_STREAMS",
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
    "CloseLook",
    "CloseView",
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
    "HttpVersion",
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
    "ThreadSchedule",
    "ThreadUsage",
    "Tls",
    "TlsCipher",
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
    "is_fleet",
    "is_named",
    "is_of",
    "is_own_generator",
]

_NAMES = {
    "address": "Address AddressKind HttpVersion Tls TlsCipher TlsKey TlsVersion Wire",
    "availability": "INSTALLABLE READY Availability AvailabilityKind",
    "claims": "ERROR_RATIO TOLERANT Claim ClaimKind Needs Original",
    "exchange": "Check Contract Request",
    "facts": (
        "CloseLook CloseView Fingerprint Fitness GeneratorFitness RunFacts SubjectFacts TrialEvent TrialFacts"
    ),
    "fault": "Fault FaultKind",
    "launch": "Launch Readiness RoleRule StopRule",
    "limit": "GeneratorVerdict Limit Limited LimitKind",
    "observation": "ListenerUsage LogTail Phase ProcessRow Sample ThreadSchedule ThreadUsage",
    "plan": "Cell Design Plan Precision",
    "recording": "Account Recording",
    "records": "Run RunStatus SubjectRecord TrialRecord",
    "sandbox": "Ceiling LimitHolding LimitState Network Placement SandboxChoice SandboxFacts SandboxKind",
    "shapes": "Json",
    "subject": "App Frontend Interface Subject is_named is_of",
    "trial": "Failed Invalid Ok Outcome Trial TrialRole",
    "workload": (
        "ELSEWHERE FLEET LOCAL MAX_CONNECTIONS MAX_PATHS MAX_RATE_PER_S MAX_STREAMS Arrivals ClosedLoop "
        "ConnectionStage CountStop DurationStop EngineChoice Loop Mix MixPath OpenLoop Pacing "
        "RateStage Stop Workload fault_of_mix is_fleet is_own_generator"
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module `{__name__}` has no `{name}`", name=name)
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found

    def __dir__() -> Sequence[str]:
        return sorted({*globals(), *__all__})

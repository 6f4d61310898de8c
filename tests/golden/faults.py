"""One fault of each kind that may spoil or disturb a trial."""

from prony.model.trial import Fault, FaultKind

FAULTS = (
    Fault(FaultKind.SLEPT, slept_ns=3_000_000_000),
    Fault(FaultKind.STOLEN_TIME, share=0.12),
    Fault(FaultKind.OTHER_LOAD, share=0.26),
    Fault(FaultKind.SANDBOX, text="no control group can be made"),
    Fault(FaultKind.GENERATOR, text="it ended with status 1"),
    Fault(FaultKind.NO_RECORDING),
    Fault(FaultKind.INTERRUPTED),
    Fault(FaultKind.LITTLES_LAW, share=-0.12),
    Fault(FaultKind.PRONY, text="KeyError: 'x'"),
)

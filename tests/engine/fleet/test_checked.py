"""Workers that are not as this side is are named before anything is sent."""

import platform
from dataclasses import replace

import pytest

from prony.core.errors import EngineError
from prony.core.version import prony_version
from prony.engine.answers import MachineFacts
from prony.engine.fleet import Fleet
from prony.engine.fleet.engine import FleetEngine
from prony.engine.generator import OnLoss
from prony.model.facts import Fingerprint
from prony.model.workload import EngineChoice

SPEC = {"workload": {"loop": {"connections": None}}}


class Paper:
    """A cluster that only answers who it is."""

    def __init__(self, **odd):
        self.names = {"tls://192.0.2.1:9": "far-1", "tls://192.0.2.2:9": "far-2"}
        usual = MachineFacts(prony_version(), platform.machine(), "far", 2, 7, False, Fingerprint())
        self._facts = dict(zip(self.names, (usual, replace(usual, **odd)), strict=True))

    def at_most(self, count):
        assert count == 2
        return self

    def ask_facts(self):
        return self._facts


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        ({"version": "99.0"}, f"this is Prony {prony_version()}, and of the fleet far-2 has 99.0"),
        ({"machine": "pdp11"}, f"this is Prony on {platform.machine()}, and of the fleet far-2 has pdp11"),
    ],
)
def test_a_worker_of_another_version_or_architecture_is_named_and_refused(odd, message):
    engine = FleetEngine(Fleet(None, 2), EngineChoice(), OnLoss.INVALID, 1)
    with pytest.raises(EngineError) as refused:
        engine.share(Paper(**odd), SPEC, 1, lambda event: None)
    assert refused.value.message == message
    assert refused.value.hint

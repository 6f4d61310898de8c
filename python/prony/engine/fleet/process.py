"""A fleet as the generator of a trial: ``local:4`` in the subject's network, or machines elsewhere.

>>> FleetProcessEngine.__name__
'FleetProcessEngine'
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace

from prony.core.errors import EngineError
from prony.core.units import SECOND_NS
from prony.engine.child_process import SPARE_NS, Child
from prony.engine.fleet import Fleet, encode_fleet
from prony.engine.generator import OnEvent, recording_of
from prony.model.address import Address
from prony.model.json_codec import Json
from prony.model.recording import Recording
from prony.model.sandbox import EngineSeat
from prony.model.workload import EngineChoice, Pacing, Workload
from prony.plan.engine_spec import hard_limit_ns, to_spec
from prony.sandbox.cgroup.scope import OwnGroup
from prony.sandbox.cgroup.types import Limits

# Until all generators are there, and until they have gone.
_START_NS = 60 * SECOND_NS
# Where ssh finds its agent, and programs.
_VARIABLES = ("SSH_AUTH_SOCK", "PATH")


class FleetProcessEngine:
    """See ``Engine``. One run at a time. On this machine each generator has the choice's threads."""

    def __init__(
        self, choice: EngineChoice, fleet: Fleet, group: Callable[[str], OwnGroup] | None = None
    ) -> None:
        self._choice, self._fleet, self._group = choice, fleet, group
        packages = [place for place in sys.path if place.startswith("/")]
        variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        self._child = Child("prony.engine.fleet.engine", packages=packages, variables=variables)

    def run(self, workload: Workload, address: Address, seat: EngineSeat, on_event: OnEvent) -> Recording:
        """Run the load to its end and return the Recording of all generators.

        *Errors*: EngineError when it could not run, lost a generator, or missed the deadline; errors of
        ``on_event``.
        """
        limit_ns = hard_limit_ns(workload) + SPARE_NS
        is_ours = self._fleet.workers is not None
        order = {
            # The CPUs of other machines are their own.
            "spec": to_spec(workload, address, self._paced(seat), seat.cpus if is_ours else None),
            "seat": asdict(seat),
            "fleet": encode_fleet(self._fleet),
            "threads": self._choice.threads if is_ours else None,
            "limit_ns": limit_ns,
        }
        with self._seats(seat) as seats:
            result = self._child.run({**order, "seats": seats}, _START_NS + limit_ns, on_event)
        recording = recording_of(result.said)
        return replace(recording, generator=replace(recording.generator, processes=result.processes))

    @contextmanager
    def _seats(self, seat: EngineSeat) -> Iterator[list[Json]]:
        """Yield a seat for each engine on this machine, in a control group of its own where it has a quota.

        *Errors*: EngineError without control groups.
        """
        count, quota = self._fleet.workers or 0, self._fleet.quota
        if quota is None:
            yield [asdict(seat)] * count
            return
        if self._group is None:
            raise EngineError(
                f"`{self._choice.name}`: a limit for each generator needs control groups",
                hint="--sandbox cgroup",
            )
        with ExitStack() as stack:
            groups = [stack.enter_context(self._group(f"generator-{k + 1}")) for k in range(count)]
            for one in groups:
                refused = one.set_limits(Limits(cpu_quota=quota))
                if refused:
                    raise EngineError(f"a generator cannot be limited: {'; '.join(refused.values())}")
            yield [asdict(replace(seat, joins=one.join_paths)) for one in groups]

    def _paced(self, seat: EngineSeat) -> EngineChoice:
        """Return the choice with the pacing of generators that share CPUs: who spins takes the others'."""
        if (self._fleet.workers or 0) * self._choice.threads > len(seat.cpus):
            return replace(self._choice, pacing=Pacing.ECONOMICAL)
        return self._choice

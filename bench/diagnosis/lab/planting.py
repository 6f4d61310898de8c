"""Plants a fault and its twin: a plan of two cells, and what is done to the trial's surroundings meanwhile.

One plant is one study with its own archive, so that a campaign can be broken off and gone on with anywhere.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

from lab.cause import Plant
from lab.setup import NeighbourOf, PlantedSide
from lab.stand_in import PEER_PORT, StandIn, stand_in_network
from prony.catalog.install.prepare import EnvironmentProgress
from prony.catalog.schema.loader import Catalog
from prony.core.sysctl import as_written
from prony.core.units import SECOND_NS
from prony.machine.cpus import available_cpus
from prony.model.exchange import Check, Contract
from prony.model.json_codec import Json
from prony.model.plan import Cell, Plan
from prony.model.sandbox import Network, Placement, SandboxChoice
from prony.model.subject import Frontend, Interface, Subject
from prony.model.trial import Trial
from prony.model.workload import DurationStop, EngineChoice, Pacing, Workload
from prony.sandbox.placement import place_in
from prony.study.task import StudyListener

HEALTHY, FAULTY = 0, 1
"""The cells of a plant's plan."""

_TIMEOUT_NS = 4 * SECOND_NS
_SIDES = ("twin", "fault")


def plan_of_plant(plant: Plant, known: Catalog, sandbox: SandboxChoice, *, blocks: int, seed: int) -> Plan:
    """Return the plan of a plant: its twin and its fault, in random order in each block.

    *Errors*: UsageError for a setting that a server does not have.
    """
    both = (plant.pair.healthy, plant.pair.faulty)
    # The fault comes first: its limits are those that the machine is tried for.
    cells = tuple(_cell(number, plant, both[number], known, sandbox) for number in (FAULTY, HEALTHY))
    title = f"{plant.cause.title} on {plant.server.name} ({plant.level})"
    return Plan(
        "planted-fault",
        title,
        f"bench/diagnosis/run --only {plant.name}",
        "quick",
        cells,
        blocks,
        seed,
    )


def _cell(number: int, plant: Plant, setup: PlantedSide, known: Catalog, sandbox: SandboxChoice) -> Cell:
    shared = sandbox.share_cpus or setup.shares_cpus
    subject = _subject(plant, setup, known, _SIDES[number])
    load = Workload(
        loop=setup.load,
        stop=DurationStop(plant.cause.window_ns),
        request=replace(subject.app.contract.checks[0].request, keep_alive=setup.kept_open),
        warmup_ns=setup.warmup_ns,
        timeout_ns=_TIMEOUT_NS,
        grace_ns=SECOND_NS,
    )
    # What stands in for the host's network gets its settings from outside: a trial may not change the host's.
    own = {} if setup.on_host else setup.sysctl
    limits = replace(
        sandbox,
        network=Network.HOST if setup.on_host else sandbox.network,
        share_cpus=shared,
        cpu_quota=setup.cpu_quota,
        memory_bytes=setup.memory_bytes,
        sysctl=tuple(sorted((name, as_written(value)) for name, value in own.items())),
    )
    return Cell(number, subject, load, EngineChoice(pacing=Pacing.usual(shares_cpus=shared)), limits)


def _subject(plant: Plant, setup: PlantedSide, known: Catalog, side: str) -> Subject:
    server, _, front = plant.server.name.partition("@")
    entry, variant = known.split(server)
    app = known.app(setup.app)
    request = replace(app.contract.checks[0].request, path=setup.path)
    peer = {"FAULTY_PEER": str(PEER_PORT)} if setup.on_host else {}
    environment = {**setup.environment, **peer}
    app = replace(app, contract=Contract((Check(request, 200, None),)), environment=environment)
    speaks = known.interfaces(server)
    frontend = known.frontend(front) if front else None
    return Subject(
        name=f"{plant.server.name}+{plant.cause.name} ({side})",
        server=entry,
        variant=variant,
        app=app,
        interface=next((one for one in speaks if one in app.targets), Interface.NONE),
        settings=dict(setup.settings),
        frontend=frontend and Frontend(frontend.entry, frontend.variant, dict(setup.frontend_settings)),
    )


class PlantingListener(StudyListener):
    """Does to a trial's surroundings what its side asks for, and hands everything on to ``listener``.

    A neighbour runs from before the server starts until after it ended; so does what stands in for the host's
    network.
    """

    def __init__(self, plant: Plant, sandbox: SandboxChoice, listener: StudyListener) -> None:
        pair = plant.pair
        self._setups = (pair.healthy, pair.faulty)
        self._listener = listener
        # Before the study: it holds this process to the generator's CPUs.
        self._placement = place_in(sandbox, available_cpus())
        self._surroundings = contextlib.ExitStack()

    def notice(self, text: str) -> None:
        """Hand it on."""
        self._listener.notice(text)

    def environment(self, progress: EnvironmentProgress) -> None:
        """Hand it on."""
        self._listener.environment(progress)

    def planned(self, trials: int) -> None:
        """Hand it on."""
        self._listener.planned(trials)

    def paused(self, left_s: float, words: str) -> None:
        """Hand it on."""
        self._listener.paused(left_s, words)

    def trial_started(self, cell: Cell, block: int, blocks: int) -> None:
        """Start the neighbour, or move to what stands in for the host's network."""
        setup, around = self._setups[cell.id], self._surroundings
        if setup.neighbour:
            around.enter_context(_neighbour(setup, self._placement))
        if setup.on_host:
            network = StandIn(setup.sysctl, setup.carried)
            around.enter_context(stand_in_network(network, self._placement.generator_cpus))
        self._listener.trial_started(cell, block, blocks)

    def trial_event(self, cell: Cell, event: Json) -> None:
        """Hand it on."""
        self._listener.trial_event(cell, event)

    def trial_ended(self, cell: Cell, trial: Trial) -> None:
        """End the neighbour, and what stands in for the host's network."""
        self.close()
        self._listener.trial_ended(cell, trial)

    def close(self) -> None:
        """End what may still run."""
        self._surroundings.close()


_BURN = """
import os, select, sys, time
share = float(sys.argv[1])
os.sched_setaffinity(0, [int(sys.argv[2])])
if os.fork():
    os._exit(0)
while not select.select([0], [], [], 0)[0]:
    end = time.thread_time() + 0.02 * share
    while time.thread_time() < end:
        pass
    time.sleep(0.02 * (1 - share) + 1e-9)
"""


@contextlib.contextmanager
def _neighbour(setup: PlantedSide, placed: Placement) -> Iterator[None]:
    """A program that takes a share of one CPU, and is nobody's child: it ends with the pipe that it reads."""
    cpus = placed.server_cpus if setup.neighbour_of is NeighbourOf.SERVER else placed.generator_cpus
    words = [sys.executable, "-c", _BURN, str(setup.neighbour), str(cpus[0])]
    ours, theirs = os.pipe()
    try:
        subprocess.run(words, stdin=ours, check=True)
        os.close(ours)
        yield
    finally:
        os.close(theirs)

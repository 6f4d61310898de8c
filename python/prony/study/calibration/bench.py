"""The reference server in different setups, measured in the same way as a study's trials.

>>> QUICK.blocks < USUAL.blocks
True
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from prony.catalog.install.prepare import EnvironmentProgress, materialise_app, prepare
from prony.catalog.schema.loader import Catalog
from prony.core.errors import FailureStage, SubjectError
from prony.core.units import SECOND_NS, seconds
from prony.core.users import RunAs
from prony.model.json_codec import Json
from prony.model.plan import Cell
from prony.model.sandbox import Placement, SandboxChoice
from prony.model.subject import Interface, Subject
from prony.model.trial import Trial
from prony.model.workload import ClosedLoop, DurationStop, Workload
from prony.sandbox.certificates import Authority
from prony.sandbox.journal import RunFolder
from prony.study.assembly import needs_of, why_unavailable
from prony.study.bench import Bench, measured
from prony.study.preparing import Ready

_SERVER, _APP = "reference", "hello"

OnEvent = Callable[[Json], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure. ``samples``: how often to time the sampler."""

    blocks: int
    window_ns: int
    warmup_ns: int
    samples: int
    connections: int = 16

    def in_words(self) -> str:
        """Return the effort, such as ``10 blocks of 1.5 s windows``."""
        return f"{self.blocks} blocks of {seconds(self.window_ns):g} s windows"


# About two minutes, with a server started and stopped for each window. Ten blocks show the
# shape of their noise twice as well as five, which are the fewest that give a verdict.
USUAL = Effort(blocks=10, window_ns=3 * SECOND_NS // 2, warmup_ns=SECOND_NS // 2, samples=40)
QUICK = Effort(blocks=5, window_ns=3 * SECOND_NS // 4, warmup_ns=SECOND_NS // 4, samples=10)


@dataclass(frozen=True, slots=True)
class CalibrationBench:
    """What all trials of a calibration share. ``no_groups``: why there are no control groups, else empty."""

    bench: Bench
    ready: Ready
    placement: Placement
    effort: Effort
    no_groups: str = ""

    def cell(self, number: int, name: str, sandbox: SandboxChoice) -> Cell:
        """Return the cell of one setup, under the load that all setups get."""
        subject = self.ready.subject
        check = subject.app.contract.checks[0]
        workload = Workload(
            ClosedLoop(self.effort.connections),
            DurationStop(self.effort.window_ns),
            request=check.request,
            warmup_ns=self.effort.warmup_ns,
        ).expecting(check)
        named = replace(subject, name=f"reference server, {name}")
        return Cell(number, named, workload, sandbox=sandbox)

    def measure(self, cell: Cell, block: int, on_event: OnEvent, *, is_watched: bool) -> Trial:
        """Run one trial of a cell, with all monitors or without any, and return it."""
        with self.bench.sandbox(f"calibrate-{block}-{cell.id}", cell.sandbox) as sandbox:
            task = self.bench.task(cell, self.ready, sandbox, self.placement, block)
            return measured(replace(task, is_watched=is_watched), on_event).trial


def open_bench(  # noqa: PLR0913, PLR0917 - what a bench is made of
    catalog: Catalog,
    user: RunAs,
    run: RunFolder,
    placement: Placement,
    effort: Effort,
    tell: Callable[[EnvironmentProgress], None],
) -> CalibrationBench:
    """Return a bench with the reference server ready to start.

    *Errors*: SubjectError when it is unavailable.
    """
    subject = Subject(_SERVER, _SERVER, catalog.app(_APP), Interface.NONE)
    needs = needs_of(catalog, subject, user)
    found = prepare(needs.all(), user, tell, jobs=1)
    lacking = why_unavailable(needs, found)
    if lacking:
        raise SubjectError(
            f"the reference server is unavailable: {lacking.reason}", stage=FailureStage.INSTALL
        )
    bench = Bench(catalog, user, run, found, Authority(run.folder))
    ready = Ready(subject, needs, materialise_app(subject.app, user))
    return CalibrationBench(bench, ready, placement, effort)

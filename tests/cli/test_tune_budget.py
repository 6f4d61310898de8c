"""A search keeps to its budget, on a clock that only its trials move."""

from types import SimpleNamespace

import pytest

from prony.core.units import SECOND_NS, seconds
from prony.figures.statistics.compare import LEAST_BLOCKS
from prony.study.rates import TYPICAL_STEPS
from prony.study.task import TRIAL_OVERHEAD_S
from prony.study.tuning import more_s
from prony.tune.race import race

SHOP = ("--app", "shop:app", "--no-current")
BUDGET_S = 900.0


class Machine:
    """A machine of its own time. ``first_s``: until a server of a stage gave its first reply; ``more_s``: by
    how much a trial is longer than foreseen; ``repeats``: of each trial; ``rate``: of one slot.
    """

    def __init__(self, first_s=1.0, more_s=0.5, repeats=0, rate=40.0):
        self.first_s, self.more_s, self.repeats, self.rate = first_s, more_s, repeats, rate
        self.now_s, self.archives, self.trials = 0.0, {}, 0

    def run_study(self, study, listener):
        del listener
        plan = study.plan
        self.now_s += 2.5
        began_s, starts, blocks = self.now_s, [], 0
        self.now_s += self.first_s * len(plan.cells)
        measuring_s = self.now_s
        for _ in range(1 if plan.design.find_rate else plan.blocks):
            block_s = self.now_s
            for cell in plan.cells:
                for _ in range(self.times(study)):
                    starts.append(self.now_s)
                    self.now_s += self.length_s(plan, cell)
            blocks += 1
            ends_s = 2 * self.now_s - block_s - measuring_s
            if study.most_ns is not None and blocks >= LEAST_BLOCKS and ends_s > seconds(study.most_ns):
                break
        self.trials += len(starts)
        run, *each = (
            SimpleNamespace(started_unix_ns=round(at * SECOND_NS), ended_unix_ns=None)
            for at in (began_s, *starts)
        )
        run.ended_unix_ns = round(self.now_s * SECOND_NS)
        cells = [
            SimpleNamespace(cell=cell, by_block=dict.fromkeys(range(blocks), self.figures(cell)), others=[])
            for cell in plan.cells
        ]
        self.archives[study.out] = SimpleNamespace(runs=[run], trials=each, cells=cells)

    def times(self, study):
        if study.plan.design.find_rate:
            return TYPICAL_STEPS + study.plan.blocks
        return 1 + min(self.repeats, study.retries)

    def length_s(self, plan, cell):
        load = cell.workload
        more = more_s(plan, self.carried(cell)) if plan.design.find_rate else 0.0
        return seconds(load.warmup_ns + load.stop.duration_ns) + TRIAL_OVERHEAD_S + self.more_s + more

    def carried(self, cell):
        return self.rate * min(4, cell.subject.levels["workers"] * cell.subject.levels["threads"])

    def figures(self, cell):
        latency = {f"service_all_{name}": 1e7 for name in ("p50", "p95", "p99")}
        cost = {"cpu_ns_per_request": 1e7, "pss_end": 5e7, "error_ratio": 0.0}
        return {"ok_per_s": self.carried(cell), **latency, **cost}


@pytest.fixture
def searched(said, folder, monkeypatch):
    """Search on a machine."""
    (folder / "shop.py").write_text("def app(environ, start_response): ...\n")

    def run(machine, *typed):
        found = []
        monkeypatch.setattr("prony.study.run_study", machine.run_study)
        monkeypatch.setattr("prony.study.tuning.read_stage", lambda path: machine.archives[path])
        with monkeypatch.context() as patched:
            patched.setattr("prony.cli.tune_search.TuneSearch.run", lambda one: found.append(one) or 0)
            done = said("tune", *SHOP, *typed)
        assert found, done.err
        [search] = found
        search.folder.mkdir(exist_ok=True)
        search._conversed(race(search.wish))
        return search

    return run


@pytest.mark.parametrize(
    ("machine", "typed"),
    [
        (Machine(), ()),
        (Machine(first_s=30.0, more_s=2.0), ()),
        (Machine(repeats=2), ()),
        (Machine(), ("--slo", "p99 < 50ms")),
        (Machine(rate=3.0), ("--slo", "p99 < 50ms")),
        (Machine(repeats=2, rate=3.0), ("--slo", "p99 < 50ms")),
    ],
    ids=["quiet", "slow to start", "disturbed", "a limit", "few requests", "few requests, disturbed"],
)
def test_a_search_takes_no_more_than_a_tenth_over_its_budget(searched, machine, typed):
    search = searched(machine, *typed)
    assert any(one.name == "confirmation" for one, _ in search.stages)
    assert machine.now_s <= 1.1 * BUDGET_S
    assert search.used_s == pytest.approx(machine.now_s, abs=10)

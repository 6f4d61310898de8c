"""Tries one setting of a server: before and after, in fresh blocks of an ordinary study of two cells."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from prony.cli.flat import option
from prony.cli.options import write_answer
from prony.cli.run_checks import archive_to_write, cpus_of, goes_on, is_complete
from prony.cli.talk import say, status_of, terminate_as_interrupt
from prony.cli.variables import again_command, whole_command
from prony.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prony.model.plan import Cell, Plan
    from prony.report.tune import TryReading, Worsened
    from prony.study import Study
    from prony.tune.race import Figures

pairs_option = partial(option, 8, "With --try: how many blocks of before and after.", min=5, max=1000)


@dataclass(frozen=True, slots=True)
class WhyOptions:
    """What `prony why` shows, or tries."""

    as_json: bool = option(False, "Print JSON.", "--json")
    attempt: bool = option(
        False,
        "Turn the setting that the cause names, of this machine's catalogue, and measure before and after.",
        "--try",
    )
    pairs: int = pairs_option()
    app: str | None = option(None, "With --try, of an app of your own: module:attribute, as it was measured.")
    directory: Path = option(Path(), "With --app: its folder.", "--dir")
    out: Path | None = option(None, "With --try: the archive to write.")

    @property
    def json_to(self) -> str | None:
        """Where JSON is written, if it is."""
        return "-" if self.as_json else None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is tried: another value of a setting of a cell's server. ``pairs``: in how many blocks."""

    cell: "Cell"
    key: str
    value: str
    metric: str
    pairs: int


def run_attempt(template: "Study", attempt: Attempt, out: Path | None, json_to: str | None) -> int:
    """Measure before and after as far as the archive lacks them, and print what that says.

    *Errors*: UsageError for a setting that the server has not, or a value that it does not take.
    """
    from prony.cli.progress import StudyProgress
    from prony.report.tune import TryVerdict, try_document
    from prony.study import run_study
    from prony.study.extent import extent_of

    plan = _plan(template, attempt)
    path = archive_to_write(plan, out)
    study = replace(template, plan=plan, out=path, resumes=goes_on(path, plan, ()))
    extent = extent_of(plan, template.catalog)
    try:
        if not (study.resumes and is_complete(path)):
            with terminate_as_interrupt(), StudyProgress(extent.trials[1], extent.each_s) as progress:
                progress.notice(f"{plan.title}: {extent}")
                run_study(study, progress)
    except KeyboardInterrupt as interrupt:
        say(f"interrupted; to go on, type again: `{whole_command(path)}`")
        return status_of(interrupt)
    found = _read(path, attempt)
    write_answer(found, lambda: try_document(found), json_to)
    return ExitCode.COULD_NOT_MEASURE if found.verdict is TryVerdict.OPEN else ExitCode.DONE


def _plan(template: "Study", attempt: Attempt) -> "Plan":
    from prony.catalog.schema.settings import resolved_settings
    from prony.plan.factors import name_with

    cell, key, cpus = attempt.cell, attempt.key, cpus_of(template.plan)
    plain = cell.subject
    entry = template.catalog.server(plain.server)
    if key not in entry.settings:
        raise UsageError(
            f"`{plain.server}` has no setting `{key}`; expected one of {', '.join(entry.settings)}",
            hint=f"prony servers {plain.server} lists them",
        )
    values = resolved_settings(entry, plain, cpus[plain.name])
    turned = replace(plain, settings={**plain.settings, key: attempt.value})
    after = resolved_settings(entry, turned, cpus[plain.name])[key]
    before = values.get(key, "default")
    if before == after:
        raise UsageError(f"`{plain.server}.{key}` is {before} already: there is nothing to try")
    subjects = [
        replace(one, name=name_with(plain.name, {key: level}), levels={key: level})
        for one, level in ((plain, before), (replace(turned, settings={**plain.settings, key: after}), after))
    ]
    return replace(
        template.plan,
        cells=tuple(replace(cell, id=k, subject=one) for k, one in enumerate(subjects)),
        blocks=attempt.pairs,
        title=f"{plain.name}: {plain.server}.{key} {before} to {after}",
        question="Does this setting help?",
        calibration=None,
    )


def _read(path: Path, attempt: Attempt) -> "TryReading":
    from prony.core.metrics import METRICS, Better
    from prony.report.tune import TryReading, TryVerdict, try_verdict
    from prony.study.tuning import figures_by_block, read_stage
    from prony.tune.race import gain_of, log_ratios_by_block
    from prony.tune.reading import change_of_gain

    reading, metric = read_stage(path), attempt.metric
    is_higher = METRICS[metric].better is Better.HIGHER
    cells = {one.cell.id: figures_by_block(one) for one in reading.cells}
    nothing: dict[int, Figures] = {}
    both = (cells.get(0, nothing), cells.get(1, nothing))
    gain = gain_of(log_ratios_by_block(metric, *both, is_higher=is_higher))
    before, after = (next(iter(one.subject.levels.values())) for one in reading.plan.cells[:2])
    lost = lost_after(*both)
    verdict = TryVerdict.REFUTED if lost is not None else try_verdict(gain)
    return TryReading(
        subject=attempt.cell.subject.name,
        load=f"{reading.plan.cells[0].describe_load()}, {attempt.cell.workload.describe_request()}",
        setting=f"{attempt.cell.subject.server}.{attempt.key}",
        before=str(before),
        after=str(after),
        verdict=verdict,
        metric=metric,
        change=change_of_gain(gain, is_higher=is_higher) if gain else None,
        pairs=gain.blocks if gain else 0,
        lost=lost,
        worse=worsened(metric, *both),
        following=_more(attempt) if verdict is TryVerdict.OPEN else "",
    )


def lost_after(before: "Mapping[int, Figures]", after: "Mapping[int, Figures]") -> float | None:
    """Return the share of requests without a valid reply after the change; None where it is no more than
    before, or 0.1 %.
    """
    from prony.figures.account import QUALIFIED_ERROR_RATIO

    own, its = (
        fmean([row["error_ratio"] for row in blocks.values() if "error_ratio" in row] or [0.0])
        for blocks in (before, after)
    )
    return its if its > max(own, QUALIFIED_ERROR_RATIO) else None


def worsened(
    metric: str, before: "Mapping[int, Figures]", after: "Mapping[int, Figures]"
) -> "tuple[Worsened, ...]":
    """Return what besides the objective ``metric`` is shown to be worse after the change, by what would be a
    gain: the throughput, the highest percentile of the latency that all trials have, and the memory.
    """
    from prony.report.tune import Worsened
    from prony.tune.race import LEAST_GAIN, gain_of, log_ratios_by_block
    from prony.tune.reading import change_of_gain, latency_metric

    found = []
    for one in ("ok_per_s", latency_metric((before, after)), "pss_end"):
        is_cost = one != "ok_per_s"
        loss = gain_of(log_ratios_by_block(one, before, after, is_higher=is_cost))
        if one != metric and loss and loss.low is not None and loss.low >= LEAST_GAIN:
            found.append(Worsened(one, change_of_gain(loss, is_higher=is_cost)))
    return tuple(found)


def _more(attempt: Attempt) -> str:
    """Return the command that was typed, with twice as many pairs, for a new archive."""
    return f"{again_command('--pairs')} --pairs {2 * attempt.pairs}"

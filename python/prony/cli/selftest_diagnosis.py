"""``prony selftest diagnosis``: plants faults in real servers, and shows which of them the rules name."""

import json
import lzma
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.talk import say, show
from prony.errors import ExitCode, HostError, PronyError, UsageError
from prony.units import parse_duration, seconds

if TYPE_CHECKING:
    from prony.faults import Plant
    from prony.faults.judge import JudgedPlant
    from prony.faults.kept import Kept
    from prony.study.campaign import Campaign

__all__ = ["FOLDER", "DiagnosisOptions", "read_evidence", "run_diagnosis", "show_diagnosis", "write_evidence"]

FOLDER = "selftest-diagnosis"
_BLOCKS = 3


@dataclass(frozen=True, slots=True)
class DiagnosisOptions:
    """What is planted: causes, or plants, by name (empty: all), a server, a shard such as ``2/8``, for how
    long at most; ``blocks`` null: three. ``dry``: only show it. ``takes_disturbed``: count trials too that
    other work on the machine disturbed.
    """

    only: tuple[str, ...] = ()
    server: str | None = None
    shard: str | None = None
    most: str | None = None
    blocks: int | None = None
    seed: int = 1
    run_as: str | None = None
    dry: bool = False
    evidence: Path | None = None
    picture: Path | None = None
    takes_disturbed: bool = False


def run_diagnosis(folder: Path, options: DiagnosisOptions, *, as_json: bool) -> int:
    """Plant what the options ask for, in ``folder``, and show what became of all that is there.

    *Errors*: UsageError for names that there are not; HostError when nothing can be measured here.
    """
    from prony.study.campaign import is_finished

    campaign, plants = _campaign(folder, options), _wanted(options)
    left = [one for one in plants if options.dry or not is_finished(folder, one)]
    if options.dry:
        _show_plan(campaign, left)
        return ExitCode.DONE
    folder.mkdir(parents=True, exist_ok=True)
    status = _measure(campaign, left, options)
    return status or show_diagnosis(folder, options, as_json=as_json)


def _wanted(options: DiagnosisOptions) -> "tuple[Plant, ...]":
    from prony.faults import CAUSES, PLANTS
    from prony.study.campaign import in_shard, matching

    found = matching(PLANTS, options.only, options.server)
    if not found:
        names = ", ".join(one.name for one in CAUSES)
        raise UsageError("no planted fault has such a cause and server", hint=f"causes: {names}")
    return found if options.shard is None else in_shard(found, *_shard(options.shard))


def _shard(text: str) -> tuple[int, int]:
    number, slash, of = text.partition("/")
    if not (slash and number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise UsageError(f"`--shard {text}`: expected one of so many parts, such as `2/8`")
    return int(number), int(of)


def _campaign(folder: Path, options: DiagnosisOptions) -> "Campaign":
    from prony.catalog.schema.loader import load_catalog
    from prony.cli.sandbox_options import SandboxOptions, chosen_sandbox
    from prony.runas import resolve_user
    from prony.study.campaign import Campaign
    from prony.study.planting import with_planted_servers

    chosen = chosen_sandbox(SandboxOptions(run_as=options.run_as), own_app=False)
    known = with_planted_servers(load_catalog(()))
    user = resolve_user(options.run_as)
    return Campaign(folder, known, user, chosen, options.blocks or _BLOCKS, options.seed)


def _show_plan(campaign: "Campaign", plants: "Sequence[Plant]") -> None:
    """Print each plant with its length, and the whole."""
    total = 0.0
    for one in plants:
        length_s = campaign.length_s(one)
        total += length_s
        show(f"{one.name:56} {one.server.kind.value:12} {one.part.value:12} {length_s:4.0f} s")
    show(f"{len(plants)} faults, about {total / 60:.0f} min")


def _measure(campaign: "Campaign", plants: "Sequence[Plant]", options: DiagnosisOptions) -> int:
    from prony.cli.interrupt import Terminated, terminate_as_interrupt

    until = None if options.most is None else time.monotonic() + seconds(_length("--for", options.most))
    with terminate_as_interrupt():
        try:
            for number, plant in enumerate(plants):
                if until is not None and time.monotonic() + campaign.length_s(plant) > until:
                    say(f"stopped in time: {len(plants) - number} faults are left")
                    break
                say(f"{number + 1} of {len(plants)}: {plant.name}")
                _plant(campaign, plant)
        except KeyboardInterrupt as interrupt:
            say(f"interrupted; to go on: `prony selftest diagnosis --out {campaign.folder}`")
            return ExitCode.TERMINATED if isinstance(interrupt, Terminated) else ExitCode.INTERRUPTED
    return ExitCode.DONE


def _length(option: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"`{option} {text}`: {error}", hint="such as `40m`") from error


def _plant(campaign: "Campaign", plant: "Plant") -> None:
    """Measure one plant; what cannot be planted here is left out, and said."""
    from prony.cli.progress import StudyProgress
    from prony.study.campaign import run_plant
    from prony.study.extent import extent_of

    extent = extent_of(campaign.plan(plant))
    with StudyProgress(extent.trials[1], extent.each_s) as progress:
        try:
            run_plant(campaign, plant, progress)
        except HostError:
            raise
        except PronyError as error:
            progress.notice(f"left out: {error.message}")


# --- what was found ---------------------------------------------------------------------------------------


def show_diagnosis(place: Path, options: DiagnosisOptions, *, as_json: bool) -> int:
    """Show what the rules make of the trials in a folder, or of evidence that was written from one.

    *Errors*: UsageError where there is none; ArchiveError.
    """
    from prony.faces.json_faults import faults_json
    from prony.faces.terminal import TerminalReporter
    from prony.faults import PLANTS
    from prony.faults.judge import judge_plants
    from prony.report.faults import faults_document

    trials = list(read_evidence(place))
    if not trials:
        raise UsageError(f"`{place}` has no planted trials", hint="prony selftest diagnosis")
    if options.evidence is not None:
        write_evidence(options.evidence, trials)
    if options.takes_disturbed:
        trials = [replace(one, disturbed=False) for one in trials]
    judged = judge_plants(PLANTS, trials)
    if options.picture is not None:
        _draw(options.picture, judged)
    if as_json:
        show(json.dumps(faults_json(str(place), judged), indent=2))
    else:
        TerminalReporter().write_report(faults_document(str(place), judged))
    return ExitCode.VERDICT_NEGATIVE if any(one.false_alarms for one in judged) else ExitCode.DONE


def _draw(file: Path, judged: "Sequence[JudgedPlant]") -> None:
    from prony.faults import CAUSES, PlanPart
    from prony.faults.matrix import matrix_of
    from prony.page.confusion import confusion
    from prony.page.render import svg

    file.write_text(svg(confusion(matrix_of(judged, CAUSES, PlanPart.HELD_OUT))))


def read_evidence(place: Path) -> "Iterator[Kept]":
    """Yield the planted trials of a folder of archives, or of a file of evidence.

    *Errors*: UsageError for a file that is none; ArchiveError.
    """
    from prony.faults import PLANTS
    from prony.faults.kept import decode_kept
    from prony.study.campaign import kept_trials

    if place.is_dir():
        for plant in PLANTS:
            yield from kept_trials(place, plant)
        return
    try:
        with lzma.open(place, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield decode_kept(json.loads(line))
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise UsageError(f"`{place}` holds no evidence of planted faults: {error}") from error


def write_evidence(file: Path, trials: "Sequence[Kept]") -> None:
    """Write trials as lines of JSON, compressed; the same trials give the same bytes."""
    from prony.faults.kept import encode_kept

    text = "".join(
        json.dumps(encode_kept(one), separators=(",", ":"), sort_keys=True) + "\n" for one in trials
    )
    file.write_bytes(lzma.compress(text.encode(), preset=9))

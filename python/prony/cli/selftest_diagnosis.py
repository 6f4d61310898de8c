"""``prony selftest diagnosis``: plants faults in real servers, and shows which of them the rules name."""

import contextlib
import json
import time
from collections.abc import Sequence
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
    from prony.faults.sessions import Session
    from prony.study.campaign import Campaign
    from prony.study.evidence_files import SessionFile

__all__ = [
    "FOLDER",
    "DiagnosisOptions",
    "read_evidence",
    "rootless_of",
    "run_diagnosis",
    "sessions_of",
    "show_diagnosis",
]

FOLDER = "selftest-diagnosis"
_BLOCKS = 3


@dataclass(frozen=True, slots=True)
class DiagnosisOptions:
    """What is planted: causes, or plants, by name (empty: all), a server, a shard such as ``2/8``, for how
    long at most; ``blocks`` null: three. ``dry``: only show it. ``takes_disturbed``: count trials too that
    other work on the machine disturbed. ``into``: a folder of evidence: what it knows is not planted, what is
    planted is added to it. ``rootless``: root plants, and ``run_as`` observes. ``through``: the number of the
    socket over which somebody else plants limits.
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
    into: Path | None = None
    rootless: bool = False
    through: int | None = None
    picture: Path | None = None
    takes_disturbed: bool = False


def run_diagnosis(folder: Path, options: DiagnosisOptions, *, as_json: bool) -> int:
    """Plant what the options ask for, in ``folder``, and show what became of all that is there, or in the
    folder of evidence.

    *Errors*: UsageError for names that there are not; HostError when nothing can be measured here.
    """
    from prony.faults.sessions import is_known

    if options.rootless:
        return _rootless(options, as_json=as_json)
    campaign, plants = _campaign(folder, options), _wanted(options)
    there = list(read_evidence(options.into)) if options.into is not None and options.into.is_dir() else []
    left = [one for one in plants if not is_known(one, there, campaign.blocks)]
    if options.dry:
        _show_plan(campaign, left)
        return ExitCode.DONE
    folder.mkdir(parents=True, exist_ok=True)
    if options.into is not None and len(left) < len(plants):
        say(f"`{options.into}` knows {len(plants) - len(left)} of {len(plants)} faults")
    with contextlib.closing(campaign.outsider) if campaign.outsider else contextlib.nullcontext():
        status = _measure_into(campaign, left, options)
    return status or show_diagnosis(options.into or folder, options, as_json=as_json)


def _rootless(options: DiagnosisOptions, *, as_json: bool) -> int:
    from prony.cli.selftest_rootless import run_rootless

    if options.into is None:
        raise UsageError("`--rootless` needs a folder of evidence", hint="--rootless --into FOLDER")
    run_rootless(_wanted(options), options.into, options.run_as, blocks=options.blocks or _BLOCKS)
    return show_diagnosis(options.into, options, as_json=as_json)


def _measure_into(campaign: "Campaign", plants: "Sequence[Plant]", options: DiagnosisOptions) -> int:
    """Measure what is left, and add it to the folder of evidence where there is one."""
    from prony.study.campaign import begun_session
    from prony.study.evidence_files import SessionFile

    if options.into is None:
        return _measure(campaign, plants, options, None)
    file = SessionFile(options.into, begun_session())
    try:
        return _measure(campaign, plants, options, file)
    finally:
        file.close()


def _wanted(options: DiagnosisOptions) -> "tuple[Plant, ...]":
    """Return what is asked for, so that each part of it has some of every cause."""
    from prony.faults import CAUSES, PLANTS
    from prony.faults.sessions import spread_out
    from prony.study.campaign import in_shard, matching

    found = spread_out(matching(PLANTS, options.only, options.server))
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
    from prony.study.outside import Outsider
    from prony.study.planting import with_planted_servers

    chosen = chosen_sandbox(SandboxOptions(run_as=options.run_as), own_app=False)
    known = with_planted_servers(load_catalog(()))
    user = resolve_user(options.run_as)
    outsider = None if options.through is None else Outsider(options.through)
    return Campaign(folder, known, user, chosen, options.blocks or _BLOCKS, options.seed, outsider)


def _show_plan(campaign: "Campaign", plants: "Sequence[Plant]") -> None:
    """Print each plant with its length, and the whole."""
    total = 0.0
    for one in plants:
        length_s = campaign.length_s(one)
        total += length_s
        show(f"{one.name:56} {one.server.kind.value:12} {one.part.value:12} {length_s:4.0f} s")
    show(f"{len(plants)} faults, about {total / 60:.0f} min")


def _measure(
    campaign: "Campaign", plants: "Sequence[Plant]", options: DiagnosisOptions, into: "SessionFile | None"
) -> int:
    """Measure plants that have no finished archive, and add the evidence of each one as it is finished."""
    from prony.cli.interrupt import Terminated, terminate_as_interrupt
    from prony.study.campaign import is_finished

    until = None if options.most is None else time.monotonic() + seconds(_length("--for", options.most))
    with terminate_as_interrupt():
        try:
            for number, plant in enumerate(plants):
                if is_finished(campaign.folder, plant):
                    # A session that was killed, or that kept no evidence, had measured it.
                    _add(into, campaign, plant)
                    continue
                if until is not None and time.monotonic() + campaign.length_s(plant) > until:
                    say(f"stopped in time: {len(plants) - number} faults are left")
                    break
                say(f"{number + 1} of {len(plants)}: {plant.name}")
                _plant(campaign, plant)
                if is_finished(campaign.folder, plant):
                    _add(into, campaign, plant)
        except KeyboardInterrupt as interrupt:
            say(f"interrupted; to go on: `prony selftest diagnosis --out {campaign.folder}`")
            return ExitCode.TERMINATED if isinstance(interrupt, Terminated) else ExitCode.INTERRUPTED
    return ExitCode.DONE


def _add(into: "SessionFile | None", campaign: "Campaign", plant: "Plant") -> None:
    """Keep the evidence of a plant where there is a folder for it; its archive is no longer needed then."""
    from prony.archive import remove_unheld
    from prony.study.campaign import archive_of, kept_trials

    if into is not None:
        into.add(tuple(kept_trials(campaign.folder, plant)))
        remove_unheld(archive_of(campaign.folder, plant))


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

    extent = extent_of(campaign.plan(plant), campaign.known)
    with StudyProgress(extent.trials[1], extent.each_s) as progress:
        try:
            run_plant(campaign, plant, progress)
        except HostError:
            raise
        except PronyError as error:
            progress.notice(f"left out: {error.message}")


# --- what was found ---------------------------------------------------------------------------------------


def show_diagnosis(place: Path, options: DiagnosisOptions, *, as_json: bool) -> int:
    """Show what the rules make of the trials in a folder of archives or of evidence, or in such a file.

    *Errors*: UsageError where there is none; ArchiveError.
    """
    from prony.faces.json_faults import faults_json
    from prony.faces.terminal import TerminalReporter
    from prony.faults import PLANTS
    from prony.faults.judge import judge_plants
    from prony.faults.sessions import trials_that_count
    from prony.report.faults import faults_document
    from prony.study.evidence_files import write_session

    sessions = sessions_of(place)
    rootless = rootless_of(place, takes_disturbed=options.takes_disturbed)
    trials, outdated = trials_that_count(sessions, PLANTS)
    if not trials and not rootless:
        raise UsageError(f"`{place}` has no planted trials", hint="prony selftest diagnosis")
    if options.evidence is not None:
        write_session(options.evidence, trials)
    if options.takes_disturbed:
        trials = tuple(replace(one, disturbed=False) for one in trials)
    judged = judge_plants(PLANTS, trials)
    measured = tuple(one.facts for one in sessions if one.facts is not None)
    if options.picture is not None:
        _draw(options.picture, judged)
    if as_json:
        show(json.dumps(faults_json(str(place), judged, measured, outdated, rootless), indent=2))
    else:
        TerminalReporter().write_report(faults_document(str(place), judged, measured, outdated, rootless))
    return ExitCode.VERDICT_NEGATIVE if any(one.false_alarms for one in judged) else ExitCode.DONE


def _draw(file: Path, judged: "Sequence[JudgedPlant]") -> None:
    from prony.faults import CAUSES, PlanPart
    from prony.faults.matrix import matrix_of
    from prony.page.confusion import confusion
    from prony.page.render import svg

    file.write_text(svg(confusion(matrix_of(judged, CAUSES, PlanPart.HELD_OUT))))


def read_evidence(place: Path) -> "tuple[Kept, ...]":
    """Return the planted trials that count, of a folder of archives or of evidence, or of a file of evidence.

    *Errors*: UsageError for a file that is none; ArchiveError.
    """
    from prony.faults import PLANTS
    from prony.faults.sessions import trials_that_count

    return trials_that_count(sessions_of(place), PLANTS)[0]


def sessions_of(place: Path) -> "tuple[Session, ...]":
    """Return the sessions of a folder of evidence; a folder of archives, or a file of evidence, is one.

    *Errors*: UsageError for a file that is none; ArchiveError.
    """
    from prony.faults import PLANTS
    from prony.faults.sessions import Session
    from prony.study.campaign import kept_trials
    from prony.study.evidence_files import read_file, sessions_in

    if not place.is_dir():
        return (read_file(place),)
    found = sessions_in(place)
    if found:
        return found
    return (Session(None, tuple(one for plant in PLANTS for one in kept_trials(place, plant))),)


def rootless_of(place: Path, *, takes_disturbed: bool = False) -> "tuple[JudgedPlant, ...]":
    """Return what became of the plants in a folder of evidence that an ordinary user observed.
    ``takes_disturbed``: trials count too that other work on the machine disturbed.

    *Errors*: UsageError for a file that holds something else.
    """
    from prony.faults import PLANTS
    from prony.faults.judge import judge_plants
    from prony.faults.sessions import trials_that_count
    from prony.study.evidence_files import sessions_in

    if not place.is_dir():
        return ()
    trials, _ = trials_that_count(sessions_in(place, rootless=True), PLANTS)
    return judge_plants(
        PLANTS, (replace(one, disturbed=one.disturbed and not takes_disturbed) for one in trials)
    )

"""``bench/diagnosis/run``: plants faults in real servers, and shows which of them the rules name."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lab import CAUSES, PLANTS
from lab.campaign import (
    FOLDER,
    Campaign,
    archive_of,
    begun_session,
    in_shard,
    is_finished,
    kept_trials,
    matching,
    run_plant,
)
from lab.cause import Plant
from lab.evidence_files import SessionFile, read_file, sessions_in
from lab.judge import judge_plants
from lab.kept import Kept
from lab.report import planted_faults
from lab.sessions import Session, is_known, spread_out, trials_that_count
from prony.archive import remove_unheld
from prony.catalog.schema.loader import load_catalog
from prony.cli.progress import StudyProgress
from prony.cli.sandbox_options import SandboxOptions, chosen_sandbox
from prony.cli.talk import Terminated, say, show, terminate_as_interrupt
from prony.core.errors import ExitCode, HostError, PronyError, UsageError
from prony.core.units import parse_duration, seconds
from prony.core.users import resolve_user
from prony.study.extent import extent_of

_BLOCKS = 3
_OUT = Path("planted-faults")
_EXAMPLES = """\
Examples:

  bench/diagnosis/run --dry-run                  the faults that can be planted, and how long they take
  bench/diagnosis/run --shard 1/8                an eighth of them; again, to go on where it stopped
  bench/diagnosis/run --only lock                one cause, on each of its servers
  bench/diagnosis/run --for 40m --into evidence  what that folder does not know, on any machine
  bench/diagnosis/run planted-faults             what the rules make of what was measured
"""


def main(words: Sequence[str] | None = None) -> int:
    """Plant what is asked for, or read it, and return the exit status: 1 where a healthy trial has a certain
    finding.
    """
    try:
        return _run(_parser().parse_args(words))
    except PronyError as error:
        say(f"error: {error.message}" + (f"\n\nhint: {error.hint}" if error.hint else ""))
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/diagnosis/run",
        description="Plants faults in real servers, each beside a healthy twin, and shows what is named.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("place", nargs="?", type=Path, help="only read: a folder of archives or of evidence")
    parser.add_argument(
        "--only", action="append", default=[], help="a cause, or a fault, by name; repeatable"
    )
    parser.add_argument("--server", help="only on this server")
    parser.add_argument("--shard", help="one of so many parts of the faults, such as 2/8")
    parser.add_argument("--for", dest="most", help="begin no fault that ends later, such as 40m")
    parser.add_argument("--repeats", type=int, default=_BLOCKS, help="pairs of trials of a fault (3)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random order")
    parser.add_argument("--run-as", help="the user that servers run as, when this runs as root")
    parser.add_argument("--out", type=Path, default=_OUT, help=f"where archives go ({_OUT})")
    parser.add_argument("--into", type=Path, help="evidence: plant what it does not know, and add that to it")
    parser.add_argument(
        "--force", action="store_true", help="count trials that other programs disturbed, too"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the faults and how long they take")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.place is not None:
        return _shown(options.place, options)
    if options.repeats < 1:
        raise UsageError(f"`--repeats {options.repeats}`: expected at least 1")
    campaign, wanted = _campaign(options), _wanted(options)
    there = read_evidence(options.into) if options.into is not None and options.into.is_dir() else ()
    left = [one for one in wanted if not is_known(one, there, campaign.blocks)]
    if options.dry_run:
        _show_plan(campaign, left)
        return ExitCode.DONE
    if len(left) < len(wanted):
        say(f"`{options.into}` knows {len(wanted) - len(left)} of {len(wanted)} faults")
    campaign.folder.mkdir(parents=True, exist_ok=True)
    status = _measured(campaign, left, options)
    return status or _shown(options.into or campaign.folder, options)


def _campaign(options: argparse.Namespace) -> Campaign:
    chosen = chosen_sandbox(SandboxOptions(run_as=options.run_as), own_app=False)
    known = load_catalog((FOLDER,))
    return Campaign(options.out, known, resolve_user(options.run_as), chosen, options.repeats, options.seed)


def _wanted(options: argparse.Namespace) -> tuple[Plant, ...]:
    """Return what is asked for, so that each part of it has some of every cause."""
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


def _show_plan(campaign: Campaign, plants: Sequence[Plant]) -> None:
    """Print each plant with its length, and the whole."""
    lengths_s = [campaign.length_s(one) for one in plants]
    for one, length_s in zip(plants, lengths_s, strict=True):
        show(f"{one.name:56} {one.server.kind.value:12} {one.part.value:12} {length_s:4.0f} s")
    show(f"{len(plants)} faults, about {sum(lengths_s) / 60:.0f} min")


def _measured(campaign: Campaign, plants: Sequence[Plant], options: argparse.Namespace) -> int:
    """Measure plants that have no finished archive; with `--into`, add the evidence of each."""
    until = None if options.most is None else time.monotonic() + seconds(_length(options.most))
    file = SessionFile(options.into, begun_session()) if options.into is not None else None
    with terminate_as_interrupt():
        try:
            for number, plant in enumerate(plants):
                if until is not None and time.monotonic() + campaign.length_s(plant) > until:
                    say(f"stopped in time: {len(plants) - number} faults are left")
                    break
                say(f"{number + 1} of {len(plants)}: {plant.name}")
                _measure(campaign, plant, file)
        except KeyboardInterrupt as interrupt:
            say("interrupted; the same command goes on")
            return ExitCode.TERMINATED if isinstance(interrupt, Terminated) else ExitCode.INTERRUPTED
        finally:
            if file is not None:
                file.close()
    return ExitCode.DONE


def _measure(campaign: Campaign, plant: Plant, file: SessionFile | None) -> None:
    """Measure one plant, unless its archive is whole. An archive whose evidence is kept is needed no more."""
    if not is_finished(campaign.folder, plant):
        _plant(campaign, plant)
    if file is not None and is_finished(campaign.folder, plant):
        file.add(tuple(kept_trials(campaign.folder, plant)))
        remove_unheld(archive_of(campaign.folder, plant))


def _length(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"`--for {text}`: {error}", hint="such as `40m`") from error


def _plant(campaign: Campaign, plant: Plant) -> None:
    """Plant one; what cannot be planted here is left out, and said."""
    extent = extent_of(campaign.plan(plant), campaign.known)
    with StudyProgress(extent.trials[1], extent.each_s) as progress:
        try:
            run_plant(campaign, plant, progress)
        except HostError:
            raise
        except PronyError as error:
            progress.notice(f"left out: {error.message}")


def _shown(place: Path, options: argparse.Namespace) -> int:
    """Show what the rules make of the trials in a folder of archives or of evidence, or in such a file.

    *Errors*: UsageError where there is none; ArchiveError.
    """
    sessions = sessions_of(place)
    trials, outdated = trials_that_count(sessions, PLANTS)
    if not trials:
        raise UsageError(f"`{place}` has no planted trials", hint="bench/diagnosis/run")
    counted = [replace(one, disturbed=one.disturbed and not options.force) for one in trials]
    judged = judge_plants(PLANTS, counted)
    show(planted_faults(judged, [one.facts for one in sessions if one.facts is not None], outdated))
    return ExitCode.VERDICT_NEGATIVE if any(one.false_alarms for one in judged) else ExitCode.DONE


def read_evidence(place: Path) -> tuple[Kept, ...]:
    """Return the planted trials that count, of a folder of archives or of evidence, or of a file of evidence.

    *Errors*: UsageError for a file that is none; ArchiveError.
    """
    return trials_that_count(sessions_of(place), PLANTS)[0]


def sessions_of(place: Path) -> tuple[Session, ...]:
    """Return the sessions of a folder of evidence; a folder of archives, or a file of evidence, is one.

    *Errors*: UsageError for a file that is none; ArchiveError.
    """
    if not place.is_dir():
        return (read_file(place),)
    found = sessions_in(place)
    return found or (Session(None, tuple(one for plant in PLANTS for one in kept_trials(place, plant))),)

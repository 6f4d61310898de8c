"""A search for settings, stage by stage: each is a study with an archive in one folder.

An interrupted search goes on where it was: what an archive has is read, and never measured again.

What runs today, as far as a search for settings can start it: it is compared with everything else.
"""

import json
from collections.abc import Container
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, cast

from prony.cli.options import duration_of, write_answer
from prony.cli.run_checks import cpus_of, goes_on, is_complete
from prony.cli.talk import say, status_of, terminate_as_interrupt
from prony.cli.variables import whole_command
from prony.core.errors import ArchiveError, ExitCode, UsageError
from prony.core.units import MIB, SECOND_NS, format_duration, nanoseconds, seconds

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from prony.catalog.discover.current import Current
    from prony.catalog.schema.loader import Catalog
    from prony.model.facts import FoundRate
    from prony.model.plan import Plan
    from prony.model.subject import Subject
    from prony.reading.study import StudyResults
    from prony.study import Study
    from prony.study.tuning import StageLoad
    from prony.tune.race import Recommendation, Reply, Stage, Trials, TuneWish
    from prony.tune.reading import About, TuneReading
    from prony.tune.space import Candidate


@dataclass(frozen=True, slots=True)
class Today:
    """What runs today. ``candidate`` null: nothing, or how many processes it starts could not be read.
    ``current``: the command. ``origin``: where the settings are from that all others are compared with.
    """

    candidate: "Candidate | None" = None
    current: "Current | None" = None
    origin: str = "its default"

    @property
    def server(self) -> str:
        """The catalogue's entry that is tried first; empty: the usual one of the app's interface."""
        is_known = self.current is not None and "--worker-class" not in self.current.lost
        return self.current.server if self.current is not None and is_known else ""

    @property
    def said(self) -> "Current | None":
        """The command whose other options all settings of its server have."""
        return self.current if self.candidate else None

    def catalog(self, known: "Catalog") -> "Catalog":
        """Return the catalogue in which the server of today has the other options of its command, so that
        all settings differ from it in numbers alone.

        *Errors*: UsageError for words that an entry may not have.
        """
        from prony.catalog.schema.command import entry_of_today

        if self.said is None:
            return known
        entry = entry_of_today(known.servers[self.said.server], self.said)
        return replace(known, servers={**known.servers, entry.name: entry})

    def variables(self, typed: Container[str]) -> list[str]:
        """Return the variables of its source as `--env` takes them, without those that were typed."""
        said = self.current.environment if self.current else {}
        return [
            f"{name}={value}" for name, value in said.items() if name not in typed and not is_turned(name)
        ]


def is_turned(variable: str) -> bool:
    """Return whether a variable says a number of a server, and nothing else: that is turned. What else reads
    WEB_CONCURRENCY, such as a configuration, may not start without; the options of a setting win over it.
    """
    from prony.catalog.discover.servers import SERVERS

    return variable != "WEB_CONCURRENCY" and any(variable in one.variables for one in SERVERS.values())


def today_of(current: "Current | None", typed: str | None, known: "Catalog") -> Today:
    """Return what runs today by its command; ``typed``: the command where it is typed.

    *Errors*: UsageError for a typed command whose number of processes cannot be read.
    """
    from prony.catalog.discover.servers import ROOTS
    from prony.catalog.schema.command import options_not_set
    from prony.study.equal_share import processes_and_threads
    from prony.tune.space import Candidate

    if current is None:
        return Today()
    counts = processes_and_threads(current, known) if current.server else (None, None)
    unread = ", ".join(current.uncounted)
    if typed is not None and unread:
        raise UsageError(
            f"`--current {typed}`: {unread} cannot be taken over, and the gain would be over something else",
            hint="type its numbers, and a class that Prony knows: --current 'gunicorn -w 4 shop:app'",
        )
    if typed is not None and counts[0] is None:
        raise UsageError(
            f"`--current {typed}`: starts no server whose number of processes is known",
            hint="name one of the catalogue, such as --current 'gunicorn -w 4 shop:app'",
        )
    if unread or counts[0] is None:
        by_itself = "how many processes it starts" if current.server else f"`{current.text}` serves by itself"
        reason = unread or by_itself
        return Today(None, current, f"its default; yours could not be read: {reason}")
    base = known.servers[current.server]
    # Where imports begin is found in the app's folder instead.
    lost = (shown for name, shown in current.lost.items() if name not in ROOTS)
    lacking = ", ".join((*lost, *options_not_set(base, current)))
    origin = f"yours without {lacking}" if lacking else "yours"
    return Today(Candidate(current.server, *counts), current, origin)


# --- the search -------------------------------------------------------------------------------------------


# One start differs from the next by more than one second from the next: many short trials say most.
DURATION = "3s"
"""Of a trial's window, unless percentiles need more."""
_LONGEST_S = 15.0
ANSWER = "answer.json"
"""The file of a search's folder that has its answer."""
FOR_TRIALS = 0.85
"""Of what is left of the budget; the rest is for the first request to each server of a stage, and for
repeats.
"""
# Before a stage's archive begins: environments are looked at, and the generator starts.
_BETWEEN_S = 3.0
# Of the budget: what takes less ended early, and what takes more is not as announced.
_EARLY, _LATE = 0.8, 1.1


def room(budget_s: float, trial_s: float) -> int:
    """Return how many trials of a length a budget, or what is left of it, has room for."""
    return int(FOR_TRIALS * max(0.0, budget_s) / trial_s)


@dataclass(slots=True)
class TuneSearch:
    """A search for settings in a folder. ``template``: a study of each server as it starts."""

    template: "Study"
    wish: "TuneWish"
    folder: Path
    today: "Today"
    budget_s: float
    trial_s: float
    remarks: tuple[str, ...]
    load: "StageLoad"
    has_length: bool
    has_connections: bool
    json_to: str | None = None
    stages: "list[tuple[Stage, Path]]" = field(default_factory=list)
    used_s: float = 0.0
    """So far, without builds: by the archives and not by a clock, so that the same search goes on as it would
    have.
    """
    last: "Trials" = field(default_factory=dict)
    """Of the last stage."""

    def run(self) -> int:
        """Run stages until the answer is there, and print it; an interruption keeps what was measured."""
        from prony.tune.race import race

        core = race(self.wish)
        self.folder.mkdir(exist_ok=True)
        say(f"to go on after an interruption, type again: `{whole_command(self.folder)}`")
        try:
            with terminate_as_interrupt():
                answer = self._conversed(core)
        except KeyboardInterrupt as interrupt:
            say(f"interrupted; to go on, type again: `{whole_command(self.folder)}`")
            return status_of(interrupt)
        return self._show(answer)

    def _conversed(self, core: "Generator[Stage, Reply, Recommendation]") -> "Recommendation":
        """Return the answer of a search whose stages are measured."""
        stage = next(core)
        while True:
            reply = self._measured(stage)
            try:
                stage = core.send(reply)
            except StopIteration as end:
                return cast("Recommendation", end.value)

    def _measured(self, stage: "Stage") -> "Reply":
        """Return the figures of a stage, which is measured as far as its archive lacks it."""
        from prony.study.tuning import read_stage, stage_plan, taken_s, trial_s, trials_of
        from prony.tune.race import StageName

        path = self.folder / f"{len(self.stages) + 1}-{stage.name}.prony"
        plan = stage_plan(self.template.plan, stage, self.wish, self.load)
        if stage.name is StageName.CAPACITY and not self._has_time(plan, stage.candidates[0]):
            return {}, self._room()
        study = replace(self.template, plan=plan, out=path, resumes=goes_on(path, plan, ()))
        if not (study.resumes and is_complete(path)):
            self._run(study, stage)
        self.stages.append((stage, path))
        reading = read_stage(path)
        self.used_s += taken_s(reading) + _BETWEEN_S
        if stage.name is StageName.CAPACITY:
            return {one: {} for one in stage.candidates}, self._room()
        trials = self.last = trials_of(reading, stage)
        self.trial_s = max(self.trial_s, trial_s(reading) or 0.0) if stage.trials > 1 else self.trial_s
        if not self.has_length:
            self._lengthen(trials, stage)
        if stage.name is StageName.PROFILE and not self.has_connections:
            self._connect(trials)
        return trials, self._room()

    def _room(self) -> int:
        """Return how many trials the budget has room for, with those that were asked for."""
        return sum(one.trials for one, _ in self.stages) + room(self.budget_s - self.used_s, self.trial_s)

    def _has_time(self, plan: "Plan", chosen: "Candidate") -> bool:
        """Return whether a search for a rate fits into what is left; say so where it does not."""
        from prony.study.extent import rough_length
        from prony.study.rates import TYPICAL_STEPS
        from prony.study.tuning import more_s

        rates = [row["ok_per_s"] for row in self.last.get(chosen, {}).values() if row.get("ok_per_s")]
        # It begins at half of what a closed loop carries.
        each_s = self.trial_s + (more_s(plan, min(rates) / 2) if rates else 0.0)
        needed_s, left_s = (TYPICAL_STEPS + plan.blocks) * each_s, self.budget_s - self.used_s
        if needed_s <= left_s:
            return True
        remark = (
            f"The highest rate within the limits was not searched for: that takes about "
            f"{rough_length(needed_s)}, and {rough_length(max(0.0, left_s))} were left of --budget."
        )
        say(remark)
        self.remarks = (*self.remarks, remark)
        return False

    def _lengthen(self, trials: "Trials", stage: "Stage") -> None:
        """Make the next windows as long as percentiles of the conditions need, as far as is known by now."""
        from prony.study.tuning import expected_rate, window_s

        rate = expected_rate(trials, stage, self.wish.machine.cpus)
        before_s = seconds(self.load.window_ns or duration_of("--duration", DURATION))
        length_s = ceil(min(_LONGEST_S, max(before_s, window_s(rate, self.wish.conditions))))
        self.load = replace(self.load, window_ns=length_s * SECOND_NS)
        self.trial_s += length_s - before_s

    def _connect(self, trials: "Trials") -> None:
        """Take as many connections as the app needs to fill the CPUs, by what one request takes alone."""
        from prony.study.tuning import USUAL_CONNECTIONS, connections_for
        from prony.tune.race import costs_of

        costs = costs_of(trials)
        cost = costs.get(self.wish.incumbent.server) or next(iter(costs.values()), None)
        if cost is None:
            return
        count = connections_for(cost, self.wish.machine.cpus, self.wish.conditions)
        if count != USUAL_CONNECTIONS:
            alone = ", ".join(
                f"{format_duration(nanoseconds(value))} {what}"
                for value, what in ((cost.cpu_s, "of CPU"), (cost.wait_s, "of waiting"))
            )
            say(f"load: {count} connections, for one request alone takes {alone} (-c sets another number)")
        self.load = replace(self.load, connections=count)

    def _run(self, study: "Study", stage: "Stage") -> None:
        from prony.cli.progress import StudyProgress
        from prony.study import run_study
        from prony.study.extent import number_of, rough_length

        left_s = max(0.0, self.budget_s - self.used_s)
        study = self._within_time(study, stage)
        with StudyProgress(stage.trials, self.trial_s) as progress:
            progress.notice(
                f"{stage.name}: {number_of(len(stage.candidates), 'setting')} in "
                f"{number_of(stage.blocks, 'block')}, about {rough_length(stage.trials * self.trial_s)}; "
                f"at most {rough_length(left_s)} left"
            )
            run_study(study, progress)

    def _within_time(self, study: "Study", stage: "Stage") -> "Study":
        """Return a stage's study with its limits: as long as planned, with what is kept for repeats, and as
        what is left allows beside a search for a rate; and repeats of disturbed trials as far as there is
        time for those of the blocks that it has at least.
        """
        from prony.figures.statistics.compare import LEAST_BLOCKS
        from prony.tune.race import CAPACITY_TRIALS, StageName

        left_s = max(0.0, self.budget_s - self.used_s - _BETWEEN_S)
        if stage.name is StageName.CAPACITY:
            return replace(study, most_ns=nanoseconds(left_s))
        kept_s = CAPACITY_TRIALS * self.trial_s if self.wish.has_capacity else 0.0
        left_s = max(0.0, left_s - kept_s)
        block_s = len(stage.candidates) * self.trial_s
        times = int(left_s / (min(stage.blocks, LEAST_BLOCKS) * block_s))
        return replace(
            study,
            most_ns=nanoseconds(min(left_s, stage.blocks * block_s / FOR_TRIALS)),
            retries=min(study.retries, max(0, times - 1)),
        )

    def _show(self, answer: "Recommendation") -> int:
        from prony.core.atomic_files import write_whole
        from prony.report.formats.as_json import document_json
        from prony.report.tune import answer_document
        from prony.tune.reading import tune_reading

        found = tune_reading(answer, self.wish, self._about(answer))
        write_whole(self.folder / ANSWER, json.dumps(document_json(found), indent=2) + "\n")
        write_answer(found, lambda: answer_document(found), self.json_to)
        return ExitCode.DONE if answer.fresh and answer.chosen else ExitCode.COULD_NOT_MEASURE

    def _about(self, answer: "Recommendation") -> "About":
        from prony.study.assembly import command_line
        from prony.study.tuning import read_stage, server_of
        from prony.tune.race import StageName
        from prony.tune.reading import About

        chosen = answer.chosen or answer.incumbent
        searched = [one for one in self.stages if one[0].name is StageName.CAPACITY]
        stage, path = next(one for one in reversed(self.stages) if one not in searched)
        place, reading = stage.candidates.index(chosen), read_stage(path)
        subject = next(cell.subject for cell in reading.plan.cells if cell.id == place)
        cell = next(one for one in self.template.plan.cells if server_of(one.subject) == chosen.server)
        full = command_line(self.template.catalog, subject, cpus_of(reading.plan)[subject.name])
        start, forms = how_to_start(answer, subject, self.today)
        return About(
            app=_named(subject),
            load=f"{reading.plan.cells[place].describe_load()}, {cell.workload.describe_request()}",
            origin=self.today.origin,
            start=start or full,
            forms=forms,
            limits=_limits(reading, place),
            carries=_found_rate(searched[0][1]) if searched else None,
            remarks=(
                *_of_cpus(reading, place),
                *self.remarks,
                *_unmeasured(answer, self.wish),
                *_of_generator(reading),
                *variables_beside(self.today, forms),
                *said_of_numbers(self.today, answer),
                *_of_processes(answer),
                *said_of_threads(answer),
                *said_of_kept_connections(self, answer),
                *_of_pace(reading, place),
                self._took(),
                self._archives(path),
            ),
        )

    def _took(self) -> str:
        """Return how much of the budget it took, and why much less, or more."""
        from prony.study.extent import rough_length

        took = f"It took {rough_length(self.used_s)} of {rough_length(self.budget_s)}, builds apart"
        if self.used_s > _LATE * self.budget_s:
            return f"{took}: trials were longer than foreseen, or repeated, and it takes five fresh pairs."
        if self.used_s < _EARLY * self.budget_s:
            return f"{took}: by what trials differ, more fresh pairs would show hardly more."
        return f"{took}."

    def _archives(self, last: Path) -> str:
        trials = sum(one.trials for one, _ in self.stages)
        return (
            f"{trials} trials in {len(self.stages)} archives, `{self.folder}`: `prony report {self.folder} "
            f"--html FILE` draws the search, `prony report FILE` reads each, `prony why {last}` says "
            "what limits."
        )


def said_of_kept_connections(search: TuneSearch, answer: "Recommendation") -> list[str]:
    """Return that what is to be used keeps connections, and today's does not: most of a gain may be that, and
    is lost behind a proxy that opens one for each request.
    """
    own, chosen = answer.incumbent, answer.chosen or answer.incumbent
    keep_alive = search.template.plan.cells[0].workload.request.keep_alive
    if not keep_alive or _keeps(search, own) or not _keeps(search, chosen):
        return []
    return [
        f"{own.words} ends the connection after each reply; {chosen.words} keeps it, as this load does. "
        "Behind a proxy that opens one for each request the gain may be less: --no-keepalive measures that."
    ]


def _keeps(search: TuneSearch, one: "Candidate") -> bool:
    """Return whether a setting keeps connections, as its server's entry declares it."""
    from prony.catalog.schema.settings import keep_alive_fact, resolved_settings
    from prony.study.tuning import server_of

    plan = search.template.plan
    plain = next(cell.subject for cell in plan.cells if server_of(cell.subject) == one.server)
    levels = search.wish.knobs_of(one).settings(one)
    subject = replace(plain, settings={**plain.settings, **levels})
    entry = search.template.catalog.server(plain.server)
    return keep_alive_fact(entry, resolved_settings(entry, subject, cpus_of(plan)[plain.name])).on


def variables_beside(today: "Today", forms: "Mapping[str, str]") -> list[str]:
    """Return which variables all trials had and no form has."""
    current = today.current if forms else None
    given = current.environment if current else {}
    missing = ", ".join(name for name in given if not any(name in text for text in forms.values()))
    if current is None or not missing:
        return []
    return [f"The app had {missing} as in {current.source}; no form above repeats them."]


def said_of_numbers(today: "Today", answer: "Recommendation") -> list[str]:
    """Return which variables say the numbers of today, where other ones are advised for the same server."""
    current, chosen = today.said, answer.chosen
    is_same = chosen is not None and chosen != answer.incumbent and chosen.server == today.server
    if current is None or not is_same or not current.by_variable:
        return []
    names = " and ".join(sorted(current.by_variable.values()))
    return [f"Today {names} says how many: change that, or type the options above, which win over it."]


def _named(subject: "Subject") -> str:
    """Return an app as people name it: a factory by its call."""
    return subject.app.factory or subject.app.targets[subject.interface]


def how_to_start(answer: "Recommendation", subject: "Subject", today: "Today") -> tuple[str, dict[str, str]]:
    """Return the command of what is to be used, and its other forms: to keep today's is to keep its words.
    Both are empty where the catalogue alone knows the server's options, or nothing is to be used.
    """
    from prony.catalog.discover.recipes import recipe_of
    from prony.tune.race import Move

    chosen, app = answer.chosen, subject.app
    if chosen is None:
        return "", {}
    yours = today.said if today.server == chosen.server else None
    if yours is not None and answer.advice is Move.KEEP:
        return yours.text, {}
    recipe = recipe_of(chosen, _named(subject), str(subject.interface), app.root, yours)
    return (recipe.shell, dict(recipe.forms(app.folder))) if recipe else ("", {})


# The largest that a search writes has some dozen settings with a hundred trials each.
_LARGEST = 4 * MIB


def read_search(folder: Path) -> "TuneReading":
    """Return the answer that a search wrote into its folder.

    *Errors*: ArchiveError for a folder without one, and for a file that is none.
    """
    from prony.core.lines import json_object
    from prony.model.json_codec import ShapeError, decode
    from prony.tune.reading import TuneReading

    path = folder / ANSWER
    if not path.is_file():
        raise ArchiveError(
            f"`{folder}` has no `{ANSWER}`; expected an archive, or a folder of `prony tune` that ended"
        )
    with path.open("rb") as file:
        content = file.read(_LARGEST + 1)
    try:
        if len(content) > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST} bytes")
        return decode(TuneReading, json_object(content), ANSWER)
    except (ValueError, ShapeError) as error:
        raise ArchiveError(f"`{path}` is no answer of `prony tune`: {error}") from None


def _found_rate(path: Path) -> "FoundRate | None":
    from prony.archive import open_archive

    with open_archive(path) as archive:
        return next(iter(archive.runs()[-1].facts.found_rates), None)


def _limits(reading: "StudyResults", cell: int) -> str:
    from prony.report.diagnoses import diagnosis_words

    found = reading.diagnoses.get(cell)
    words = str(diagnosis_words([(found, "")])) if found else ""
    return words[:1].upper() + words[1:]


def _unmeasured(answer: "Recommendation", wish: "TuneWish") -> list[str]:
    """Return which conditions no fresh trial has a figure for: it shows none of them to be met."""
    known = {name for blocks in answer.fresh.values() for figures in blocks.values() for name in figures}
    missing = [one.text for one in wish.conditions if not known.intersection(one.metrics)]
    if not missing or not known:
        return []
    return [f"No trial had enough requests for {', '.join(missing)}: make them longer with --duration."]


def _of_cpus(reading: "StudyResults", place: int) -> list[str]:
    """Return which CPUs a cell's server had, and what the generator took of them."""
    found = next((one for one in reading.cells if one.cell.id == place), None)
    placed = next((one.placement for one in found.counted if one.placement), None) if found else None
    if found is None or placed is None:
        return []
    cpus = found.cell.sandbox.cpu_quota or len(placed.server_cpus)
    had = f"The server had {cpus:g} CPU{'s' if cpus != 1 else ''} of this machine"
    if not placed.shared:
        return [f"{had}, the generator others."]
    if not found.generator_share:
        return [f"{had}; the generator ran on them too."]
    return [
        f"{had}; the generator ran on them too and took at most {found.generator_share:.1%} of the CPU time "
        "of both; under a load from elsewhere it may carry so much more."
    ]


def _of_generator(reading: "StudyResults") -> list[str]:
    """Return that the generator may have been the limit, where it may."""
    if not any(cell.held_back or any(one.disturbed for one in cell.counted) for cell in reading.cells):
        return []
    return ["The generator or another program may have limited some trials: it carries at least so much."]


def _of_processes(answer: "Recommendation") -> list[str]:
    """Return what several processes may break, where the advice has more of them than today."""
    workers, before = ((one.workers if one else None) or 1 for one in (answer.chosen, answer.incumbent))
    if workers <= before:
        return []
    return [
        f"What the app keeps in its own memory (sessions, caches, counters, background jobs) is there "
        f"{workers} times with {workers} processes; no load shows what that breaks: look before you change, "
        "or search with --hold workers."
    ]


def said_of_threads(answer: "Recommendation") -> list[str]:
    """Return what threads may break, where the advice has them and today does not."""
    threads, before = ((one.threads if one else None) or 1 for one in (answer.chosen, answer.incumbent))
    if threads <= 1 or before > 1:
        return []
    return [
        f"The app's code runs in {threads} threads of a process at once, and today in one: what is not made "
        "for that (globals, shared clients, libraries in C) may mix up requests, which no load shows: look "
        "before you change, or search with --hold threads."
    ]


def _of_pace(reading: "StudyResults", cell: int) -> list[str]:
    """Return that a setting was still changing its pace, where its windows show it."""
    from prony.figures.steadiness import Steadiness

    found = next((one.steadiness for one in reading.cells if one.cell.id == cell), None)
    if not isinstance(found, Steadiness) or found.is_steady:
        return []
    return [
        "It was not steady in its windows, as while caches fill: a longer --warmup shows what it does then."
    ]
